"""The chat-completions wire, both ways."""

import json
from typing import Any

import pytest

from gymsuite import Message, ToolCall, ToolSchema
from gymsuite.types import ImagePart, TextPart
from gymsuite.wire import decode_completion, decode_error, encode_message, encode_tools


def _response(message: dict[str, Any], **outer: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], **outer}).encode()


def _call(arguments: Any, name: str | None = "bash", call_id: str | None = "c1") -> ToolCall:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return decode_completion(_response({"tool_calls": [call]})).tool_calls[0]


def test_arguments_are_json_text_on_the_wire_only() -> None:
    call = ToolCall(id="c1", name="bash", arguments={"command": "ls", "n": [1, None]})
    wire = encode_message(Message(role="assistant", tool_calls=(call,)))
    function = wire["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"command": "ls", "n": [1, None]}
    assert wire["content"] is None
    assert _call(function["arguments"]) == call


def test_a_tool_reply_names_its_call() -> None:
    wire = encode_message(Message(role="tool", content="out", tool_call_id="c1"))
    assert wire == {"role": "tool", "content": "out", "tool_call_id": "c1"}


def test_pictures_travel_as_data_urls() -> None:
    parts = (TextPart(text="see"), ImagePart(media_type="image/png", data=b"\x89PNG"))
    wire = encode_message(Message(role="user", content=parts))
    assert wire["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
    ]


def test_reasoning_goes_back_only_when_a_field_is_named() -> None:
    message = Message(role="assistant", content="4", reasoning="2+2")
    assert encode_message(message) == {"role": "assistant", "content": "4"}
    assert encode_message(message, reasoning_field="reasoning_content") == {
        "role": "assistant",
        "content": "4",
        "reasoning_content": "2+2",
    }


def test_a_tool_schema_becomes_a_function() -> None:
    schema = ToolSchema(name="f", description="d", parameters={"type": "object"})
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    assert encode_tools([schema]) == [{"type": "function", "function": function}]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_under_either_name(field: str) -> None:
    assert decode_completion(_response({"content": "4", field: "2+2"})).reasoning == "2+2"


def test_usage_includes_cached_and_reasoning_tokens() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    read = decode_completion(_response({"content": "x"}, usage=usage)).usage
    assert read is not None
    assert (read.input_tokens, read.cached_tokens) == (100, 64)
    assert (read.output_tokens, read.reasoning_tokens) == (20, 7)


def test_a_server_that_reports_no_usage_costs_nothing_known() -> None:
    assert decode_completion(_response({"content": "x"})).usage is None


def test_the_response_is_identified_in_extra() -> None:
    extra = decode_completion(_response({"content": "x"}, id="r1", model="m-2")).extra
    assert extra == {"id": "r1", "model": "m-2", "finish_reason": "stop"}


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "thing"}, {"type": "text", "text": "b"}]
    assert decode_completion(_response({"content": parts})).text == "ab"


def test_a_refusal_is_what_the_model_said() -> None:
    assert decode_completion(_response({"content": None, "refusal": "no"})).text == "no"


def test_double_encoded_arguments_are_accepted() -> None:
    call = _call(json.dumps(json.dumps({"command": "ls"})))
    assert call.error is None
    assert call.arguments == {"command": "ls"}


def test_arguments_may_be_an_object_already() -> None:
    assert _call({"command": "ls"}).arguments == {"command": "ls"}


@pytest.mark.parametrize("arguments", ["", None, "{}"])
def test_missing_arguments_are_no_arguments(arguments: str | None) -> None:
    call = _call(arguments)
    assert (call.arguments, call.error) == ({}, None)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"command": "ls', "not JSON"),
        ("ls -la", "not JSON"),
        ("[1, 2]", "an array"),
        ('"ls"', "not JSON"),
        ("3", "a number"),
        ("null", "null"),
        ("true", "a boolean"),
        ('{"x": NaN}', "not JSON"),
        ('{"x": "\\ud800"}', "not JSON"),
        ("[" * 5000, "not JSON"),
        ('"' * 5000, "not JSON"),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_an_error(arguments: str, complaint: str) -> None:
    call = _call(arguments)
    assert call.arguments == {}
    assert call.name == "bash"
    assert complaint in (call.error or "")
    assert len(call.error or "") < 400
    call.model_dump_json()


@pytest.mark.parametrize("name", [None, ""])
def test_a_call_without_a_name_is_kept_as_an_error(name: str | None) -> None:
    assert "does not name a tool" in (_call("{}", name=name).error or "")


def test_a_call_without_an_id_gets_one_of_its_own() -> None:
    calls = [{"function": {"name": "f", "arguments": "{}"}}] * 2
    message = decode_completion(_response({"tool_calls": calls}, id="r1"))
    assert [call.id for call in message.tool_calls] == ["r1-0", "r1-1"]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}]}', b"\xff\xfe", b"null"],
)
def test_anything_else_is_no_completion(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_completion(body)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error": {"message": "m", "code": "c", "type": "t"}}', "m", "c t"),
        (b'{"error": {"message": "m", "code": 429}}', "m", "429"),
        (b'{"error": "m"}', "m", ""),
        (b'{"object": "error", "message": "m", "code": 400}', "m", "400"),
        (b'{"detail": [{"msg": "m"}]}', '[{"msg":"m"}]', ""),
        (b"<html>\n busy \x1b[31m</html>", "<html> busy  [31m</html>", ""),
        (b"", "", ""),
    ],
)
def test_the_servers_words_are_found_in_an_error(body: bytes, message: str, code: str) -> None:
    assert decode_error(body) == (message, code)
