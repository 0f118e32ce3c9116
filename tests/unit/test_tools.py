import asyncio
import random
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from gymsuite import (
    Context,
    DefinitionError,
    Limits,
    PathRefused,
    Task,
    ToolCall,
    ToolError,
    bash,
    edit,
    submit,
)
from gymsuite.sampling import sample_action
from gymsuite.tools import SchemaTool, Toolbox
from gymsuite.types import ToolSchema

from .conftest import FakeSandbox


def make_context(sandbox: FakeSandbox | None = None) -> Context:
    return Context(
        task=Task(id="t", prompt="p"),
        sandbox=sandbox or FakeSandbox(),
        limits=Limits(),
        rng=random.Random(0),
        seconds_left=lambda: 100.0,
    )


def reply(name: str, arguments: dict[str, Any], context: Context, error: str | None = None) -> str:
    call = ToolCall(id="1", name=name, arguments=arguments, error=error)
    return asyncio.run(Toolbox.of((bash, edit, submit)).call(call, context)).text


def test_a_schema_says_what_the_signature_says() -> None:
    schema = next(s for s in Toolbox.of((edit,)).schemas if s.name == "edit")
    assert schema.parameters["required"] == ["path", "old", "new"]
    assert schema.parameters["properties"]["path"] == {"type": "string"}
    assert schema.parameters["additionalProperties"] is False
    assert schema.description.startswith("Replace the one place")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("nope", {}, "no tool 'nope'; there are: bash, edit, submit"),
        ("bash", {}, "command: Field required"),
        ("bash", {"command": 3}, "command: Input should be a valid string"),
        ("bash", {"command": "x", "extra": 1}, "extra: Extra inputs are not permitted"),
        ("bash", {"command": "a\0b"}, "NUL"),
        ("edit", {"path": "", "old": "", "new": ""}, "path is empty"),
    ],
)
def test_a_mistake_of_the_agent_is_an_observation(
    name: str, arguments: dict[str, Any], says: str
) -> None:
    assert says in reply(name, arguments, make_context())


def test_unreadable_arguments_are_never_run() -> None:
    context = make_context()
    assert "not valid JSON" in reply("submit", {}, context, error="not valid JSON")
    assert not context.submitted


def test_a_call_after_submit_is_not_run() -> None:
    sandbox = FakeSandbox()
    context = make_context(sandbox)
    reply("submit", {"answer": "7"}, context)
    assert "over" in reply("edit", {"path": "f", "old": "", "new": "x"}, context)
    assert context.answer == "7"
    assert sandbox.files == {}


def test_lone_surrogates_from_json_reach_no_encoder() -> None:
    sandbox = FakeSandbox()
    reply("edit", {"path": "f", "old": "", "new": "a\ud800b"}, make_context(sandbox))
    assert sandbox.files == {"f": b"a?b"}


@pytest.mark.parametrize(
    ("data", "old", "says"),
    [
        (b"a\na\n", "a", "occurs 2 times"),
        (b"a\r\nb\r\n", "a\nb", "end in \\r\\n"),
        (b"  if x:\n      y\n", "if x:\n  y", "but for its white space"),
        (b"first\nsecond\n", "first\nthird", "its first line is in line 1"),
        (b"first\n", "zzz", "does not occur"),
        (b"first\n", "", "exists"),
    ],
)
def test_edit_says_why_it_did_not_replace(data: bytes, old: str, says: str) -> None:
    sandbox = FakeSandbox({"f": data})
    assert says in reply("edit", {"path": "f", "old": old, "new": "n"}, make_context(sandbox))
    assert sandbox.files["f"] == data


def test_edit_looks_for_no_near_miss_in_a_huge_file() -> None:
    """Splitting it would cost many times the memory that its author spent."""
    sandbox = FakeSandbox({"f": b"a  b\n" * 300_000})
    said = reply("edit", {"path": "f", "old": "b a", "new": "n"}, make_context(sandbox))
    assert said == "error: `old` does not occur in 'f'"


def test_edit_replaces_the_one_place_and_says_where() -> None:
    sandbox = FakeSandbox({"f": b"one\ntwo\xff\nthree\n"})
    said = reply("edit", {"path": "f", "old": "three", "new": "3"}, make_context(sandbox))
    assert said == "replaced 1 line(s) of f from line 3"
    assert sandbox.files["f"] == b"one\ntwo\xff\n3\n"


def test_a_bug_in_a_tool_is_the_authors_fault() -> None:
    async def broken(context: Context) -> str:
        raise ValueError("oops")

    async def careful(context: Context) -> str:
        raise ToolError("no such room")

    box = Toolbox.of((broken, careful))
    with pytest.raises(DefinitionError, match="broken.*ValueError: oops"):
        asyncio.run(box.call(ToolCall(name="broken"), make_context()))
    said = asyncio.run(box.call(ToolCall(name="careful"), make_context())).text
    assert said == "error: no such room"


def test_a_path_that_the_sandbox_refuses_is_an_observation() -> None:
    class Refusing(FakeSandbox):
        async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
            raise PathRefused(f"cannot write {path}: Is a directory")

    said = reply("edit", {"path": "src", "old": "", "new": "x"}, make_context(Refusing()))
    assert said == "error: cannot write src: Is a directory"


def test_a_tool_without_a_schema_is_refused() -> None:
    async def untyped(context: Context, x) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
        return ""

    def sync(context: Context) -> str:
        return ""

    for bad, says in ((untyped, "'x' has no type"), (sync, "async def")):
        with pytest.raises(DefinitionError, match=says):
            Toolbox.of((bad,))  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="share a name"):
        Toolbox.of((bash, bash))


def test_samples_are_valid_calls_and_depend_on_the_rng_only() -> None:
    async def turn(context: Context, way: Literal["left"], by: Literal[1, 2]) -> str:
        """Turn."""
        return "turned"

    box = Toolbox.of((bash, edit, submit, turn))
    drawn = [sample_action(box.schemas, random.Random(7)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    rng = random.Random(1)
    for _ in range(50):
        (call,) = sample_action(box.schemas, rng).tool_calls
        box.arguments[call.name].model_validate(dict(call.arguments))


def test_a_tool_with_a_schema_of_its_own_gets_its_arguments_as_they_are() -> None:
    seen: list[Any] = []

    async def run(context: Context, arguments: Mapping[str, Any]) -> str:
        seen.append(dict(arguments))
        if "context" not in arguments:
            raise ToolError("no context")
        return "ran"

    schema = {"type": "object", "properties": {"from": {"type": "string"}}}
    tool = SchemaTool(ToolSchema(name="far", description="Far.", parameters=schema), run)
    toolbox = Toolbox.of((submit, tool))
    assert toolbox.schemas[1].parameters == schema
    odd = {"from": 1, "context": 2, "self": 3, "in/out": None, "_x": [1]}
    for arguments, reply in ((odd, "ran"), ({}, "error: no context")):
        call = ToolCall(id="1", name="far", arguments=arguments)
        assert asyncio.run(toolbox.call(call, make_context())).text == reply
    assert seen == [odd, {}]


def test_two_tools_of_one_name_are_refused_whatever_they_are() -> None:
    async def run(context: Context, arguments: Mapping[str, Any]) -> str:
        return ""

    tool = SchemaTool(ToolSchema(name="submit", description="", parameters={}), run)
    with pytest.raises(DefinitionError, match="share a name"):
        Toolbox.of((submit, tool))
