"""Standard MCP clients play episodes over streamable HTTP; reset and reward are elsewhere."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from gymsuite import (
    Action,
    Context,
    Environment,
    Message,
    OpenSandbox,
    Rollout,
    SandboxSpec,
    Score,
    Submission,
    Task,
    UsageError,
    submit,
)
from gymsuite.mcp.desk import Desk, Offer
from gymsuite.mcp.serving import Door, open_control, open_sessions
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.worlds.procedural import places

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
KEY = "a key of the starter's"


async def think(context: Context, thought: str) -> str:
    """Think about it."""
    await asyncio.sleep(0.3 if thought == "slowly" else 0)
    return "thought about " + thought


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    passed = submission.answer == "yes"
    return Score(reward=float(passed), passed=passed)


@asynccontextmanager
async def no_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise AssertionError("nothing here needs one")
    yield


TASKS = [
    Task(id=f"t{n}", prompt=f"Say yes, {n}.", hidden={"key": "a long secret that nobody sees"})
    for n in range(6)
]
ENVIRONMENT = Environment("test/yes-v1", TASKS, verify, tools=(think, submit))


@dataclass
class Server:
    url: str
    control: str
    http: httpx.AsyncClient
    records: list[Rollout] = field(default_factory=list)
    kept: asyncio.Event = field(default_factory=asyncio.Event)

    def keep(self, name: str, record: Rollout) -> None:
        self.records.append(record)
        self.kept.set()

    async def ask(self, method: str, path: str = "", body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        reply = await self.http.request(method, self.control + path, headers=headers, json=body)
        return reply.json()

    async def initialize(self) -> httpx.Response:
        return await self.http.post(self.url, json=INITIALIZE, headers=HEADERS)


def serve(
    play: Callable[[Server], Awaitable[None]],
    *,
    token: str = "",
    max_episodes: int = 64,
    idle_seconds: float = 60,
    environment: Environment = ENVIRONMENT,
) -> list[Rollout]:
    """Serve an environment for as long as it is played; return the records."""

    async def run() -> list[Rollout]:
        offer = Offer(environment, places(TASKS), no_sandbox, 0, max_episodes, idle_seconds)
        async with asyncio.timeout(60), httpx.AsyncClient(timeout=30) as http:
            server = Server("", "", http)
            async with (
                Desk(offer, server.keep) as desk,
                open_sessions(desk, Door("127.0.0.1", 0, token)) as server.url,
                open_control(desk, Door("127.0.0.1", 0, KEY)) as server.control,
            ):
                await play(server)
            return server.records

    return asyncio.run(run())


@asynccontextmanager
async def session_at(url: str, token: str = "") -> AsyncIterator[ClientSession]:
    async with (
        create_mcp_http_client({"Authorization": f"Bearer {token}"} if token else {}) as client,
        streamable_http_client(url, http_client=client) as streams,
        ClientSession(*streams) as session,
    ):
        await session.initialize()
        yield session


def said(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_each_session_is_an_episode_of_its_own() -> None:
    async def play(server: Server) -> None:
        async with session_at(server.url) as one, session_at(server.url) as two:
            assert len((await one.list_tools()).tools) == 3
            assert said(await one.call_tool("submit", {"answer": "yes"})) == "submitted"
            await two.call_tool("submit", {"answer": "no"})

    records = serve(play)
    assert [(r.task, r.score and r.score.passed) for r in records] == [("t0", True), ("t1", False)]


def test_tasks_come_in_turn_and_again_with_the_next_seed() -> None:
    async def play(server: Server) -> None:
        begun = [await server.ask("POST", body={}) for _ in range(8)]
        assert [(e["task"], e["seed"]) for e in begun[4:]] == [
            ("t4", 0),
            ("t5", 0),
            ("t0", 1),
            ("t1", 1),
        ]

    assert len(serve(play)) == 8


def test_a_client_of_the_newest_protocol_falls_back_to_a_session() -> None:
    async def play(server: Server) -> None:
        async with Client(server.url) as client:
            assert said(await client.call_tool("think", {"thought": "x"})) == "thought about x"
        (shown,) = (await server.ask("GET"))["episodes"]
        assert shown["calls"] == 1

    serve(play)


def test_a_plain_client_is_told_its_task_in_every_way_that_clients_show() -> None:
    async def play(server: Server) -> None:
        for number in range(2):
            async with Client(server.url) as client:
                told = f"Say yes, {number}."
                assert (client.instructions or "").endswith(f"\n\n{told}")
                assert (await client.list_tools()).tools[0].name == "describe_task"
                assert said(await client.call_tool("describe_task")) == told
                (message,) = (await client.get_prompt("task")).messages
                assert isinstance(message.content, TextContent)
                assert message.content.text == told
        shown = (await server.ask("GET"))["episodes"]
        assert [episode["calls"] for episode in shown] == [0, 0]

    serve(play)


def test_an_environment_keeps_a_tool_of_its_own_that_describes_the_task() -> None:
    async def describe_task(context: Context) -> str:
        """Describe it otherwise."""
        return "otherwise"

    own = replace(ENVIRONMENT, tools=(describe_task, submit))

    async def play(server: Server) -> None:
        async with session_at(server.url) as session:
            names = [tool.name for tool in (await session.list_tools()).tools]
            assert names == ["describe_task", "submit"]
            assert said(await session.call_tool("describe_task")) == "otherwise"

    serve(play, environment=own)


def test_reset_and_reward_are_asked_for_on_a_channel_of_their_own() -> None:
    async def play(server: Server) -> None:
        begun = await server.ask("POST", body={"task": "t5", "seed": 7})
        assert begun["messages"][-1]["content"] == "Say yes, 5."
        assert [tool["name"] for tool in begun["tools"]] == ["think", "submit"]
        assert not begun["over"]
        async with session_at(f"{server.url}/{begun['episode']}") as session:
            await session.call_tool("think", {"thought": "x"})
            ended = await server.ask("POST", f"/{begun['episode']}/end", {"answer": "yes"})
        assert (ended["task"], ended["seed"], ended["calls"], ended["over"]) == ("t5", 7, 1, True)
        assert ended["score"]["reward"] == 1.0
        assert "long secret" not in json.dumps([begun, ended])

    serve(play)


def test_a_final_answer_ends_an_episode_in_which_somebody_responds() -> None:
    async def respond(context: Context, action: Action) -> tuple[Message, ...] | None:
        return (Message(role="user", content="And then?"),)

    async def run() -> None:
        asked = Environment("test/talk-v1", TASKS, verify, tools=(submit,), respond=respond)
        kept: list[Rollout] = []
        async with (
            asyncio.timeout(60),
            Desk(Offer(asked, places(TASKS), no_sandbox), lambda _, r: kept.append(r)) as desk,
            open_control(desk, Door("127.0.0.1", 0, KEY)) as control,
            httpx.AsyncClient(timeout=20, headers={"Authorization": f"Bearer {KEY}"}) as http,
        ):
            begun = (await http.post(control, json={})).json()
            reply = await http.post(f"{control}/{begun['episode']}/end", json={"answer": "yes"})
            assert reply.json()["over"]
        (record,) = kept
        assert record.score is not None
        assert [message.text for message in record.messages[-2:]] == ["yes", "And then?"]

    asyncio.run(run())


def test_a_request_that_opens_no_session_takes_no_task_from_its_turn() -> None:
    async def play(server: Server) -> None:
        for _ in range(3):
            assert (await server.http.get(server.url)).status_code >= 400
        begun = [await server.ask("POST", body={}) for _ in range(2)]
        assert [episode["task"] for episode in begun] == ["t0", "t1"]

    serve(play)


def test_an_episode_that_was_begun_outlives_requests_that_open_no_session() -> None:
    async def play(server: Server) -> None:
        begun = await server.ask("POST", body={"task": "t5"})
        url = f"{server.url}/{begun['episode']}"
        for content in (b"", b"nonsense", b"{}"):
            reply = await server.http.post(url, content=content, headers=HEADERS)
            assert 400 <= reply.status_code < 500
        assert (await server.http.get(url)).status_code >= 400
        async with session_at(url) as session:
            assert said(await session.call_tool("submit", {"answer": "yes"})) == "submitted"

    (record,) = serve(play)
    assert (record.task, record.score and record.score.passed) == ("t5", True)


def test_an_agent_reaches_neither_control_nor_reward() -> None:
    async def play(server: Server) -> None:
        async with session_at(server.url) as session:
            (shown,) = (await server.ask("GET"))["episodes"]
            name, root = shown["episode"], server.url.removesuffix("/mcp")
            for key in ("", "Bearer wrong", name, f"Bearer {name}"):
                for method, path in (("GET", ""), ("POST", ""), ("POST", f"/{name}/end")):
                    headers = {"Authorization": key, "mcp-session-id": name}
                    url = server.control + path
                    reply = await server.http.request(method, url, headers=headers)
                    assert reply.status_code == 401
            for path in ("/episodes", "/mcp/episodes", f"/mcp/{name}", f"/mcp/{name}/end"):
                reply = await server.http.post(root + path, json={}, headers=HEADERS)
                assert reply.status_code == 404
            said_last = await session.call_tool("submit", {"answer": "yes"})
            assert "reward" not in said_last.model_dump_json()
        assert len((await server.ask("GET"))["episodes"]) == 1

    serve(play)


def test_bad_requests_begin_no_episode() -> None:
    async def play(server: Server) -> None:
        opening = json.dumps(INITIALIZE).encode()
        listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        for content, headers in (
            (b"nonsense", HEADERS),
            (b"{}", HEADERS),
            (listing, HEADERS),
            (opening, {**HEADERS, "Host": "evil.example"}),
            (opening, {**HEADERS, "Origin": "https://evil.example"}),
            (opening, {**HEADERS, "mcp-session-id": "nobody"}),
            (b"x" * (5 << 20), HEADERS),
        ):
            reply = await server.http.post(server.url, content=content, headers=headers)
            assert 400 <= reply.status_code < 500, content[:80]
        for body in ({"task": "t99"}, {"taks": "t1"}, {"seed": "x"}, [1]):
            assert "error" in await server.ask("POST", body=body)
        assert (await server.ask("GET"))["episodes"] == []

    assert serve(play) == []


@pytest.mark.parametrize(
    "arguments",
    [
        '{"thought": NaN}',
        '{"thought": "\\u0000"}',
        '{"thought": "\\ud800"}',
        '{"thought": "\u202egnp.x"}',
        '{"thought": ' + "[" * 150 + "]" * 150 + "}",
        '{"thought": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"thought": ' + "9" * 5000 + "}",
        '{"": 1, "self": 2, "context": 3, "thought": "x"}',
        "[]",
        '"thought"',
        "null",
    ],
)
def test_odd_arguments_are_told_what_is_wrong_and_end_nothing(arguments: str) -> None:
    async def play(server: Server) -> None:
        opened = await server.initialize()
        headers = {**HEADERS, "mcp-session-id": opened.headers["mcp-session-id"]}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await server.http.post(server.url, json=ready, headers=headers)
        asked = (
            '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"think","arguments":'
        )
        content = (asked + arguments + "}}").encode()
        reply = await server.http.post(server.url, content=content, headers=headers)
        assert reply.status_code in (200, 400)
        assert "Traceback" not in reply.text
        again = (asked + '{"thought": "x"}}}').encode()
        reply = await server.http.post(server.url, content=again, headers=headers)
        assert "thought about x" in reply.text

    (record,) = serve(play)
    assert record.score is not None


def test_no_more_episodes_than_allowed() -> None:
    async def play(server: Server) -> None:
        first = await server.initialize()
        assert first.status_code == 200
        assert (await server.initialize()).status_code == 503
        name = first.headers["mcp-session-id"]
        session = {**HEADERS, "mcp-session-id": name}
        assert (await server.http.delete(server.url, headers=session)).status_code == 200
        await server.ask("POST", f"/{name}/end")
        again = await server.initialize()
        assert again.status_code == 200
        assert again.headers["mcp-session-id"] != name

    serve(play, max_episodes=1)


def test_an_idle_session_ends_and_its_episode_is_scored() -> None:
    async def play(server: Server) -> None:
        name = (await server.initialize()).headers["mcp-session-id"]
        await server.kept.wait()
        shown = await server.ask("GET", f"/{name}")
        assert shown["over"]
        assert shown["score"]["reward"] == 0.0
        assert shown["truncation"] in ("idle", "session_closed")

    serve(play, idle_seconds=0.2)


def test_a_call_given_up_is_carried_out_and_the_session_lives() -> None:
    async def play(server: Server) -> None:
        async with session_at(server.url) as session:
            with pytest.raises(MCPError):
                await session.call_tool("think", {"thought": "slowly"}, read_timeout_seconds=0.05)
            assert said(await session.call_tool("submit", {"answer": "yes"})) == "submitted"

    (record,) = serve(play)
    assert record.score is not None
    assert record.score.passed
    assert next(m.text for m in record.messages if m.role == "tool") == "thought about slowly"


def test_a_hundred_calls_at_once_are_carried_out_in_turn() -> None:
    async def play(server: Server) -> None:
        async with session_at(server.url) as session:
            calls = [session.call_tool("think", {"thought": f"{n}"}) for n in range(100)]
            results = await asyncio.gather(*calls)
            assert sum(not result.is_error for result in results) == 50  # its limit of steps
            assert all("over" in said(result) for result in results if result.is_error)

    serve(play)


def test_beyond_loopback_a_token_is_needed() -> None:
    async def play(server: Server) -> None:
        assert (await server.initialize()).status_code == 401
        async with session_at(server.url, "sesame") as session:
            assert len((await session.list_tools()).tools) == 3

    serve(play, token="sesame")  # noqa: S106 - of this test

    async def listen() -> None:
        desk = Desk(Offer(ENVIRONMENT, places(TASKS), no_sandbox), lambda name, record: None)
        async with open_sessions(desk, Door("0.0.0.0", 0, "")):  # noqa: S104 - refused
            pass

    with pytest.raises(UsageError, match="token"):
        asyncio.run(listen())


def test_a_record_that_cannot_be_kept_is_not_passed_over() -> None:
    def keep(name: str, record: Rollout) -> None:
        raise OSError(28, "No space left on device")

    async def run() -> None:
        async with Desk(Offer(ENVIRONMENT, places(TASKS), no_sandbox), keep) as desk:
            sitting = desk.begin()
            sitting.visitor.leave("test")
            await sitting.over.wait()

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(run())


def test_what_is_remembered_of_an_episode_is_how_it_ended() -> None:
    async def play(server: Server) -> None:
        begun = await server.ask("POST", body={})
        ended = await server.ask("POST", f"/{begun['episode']}/end", {"answer": "no"})
        assert ended["score"]["reward"] == 0.0
        assert await server.ask("GET", f"/{begun['episode']}") == ended

    (record,) = serve(play)
    assert record.messages[-1].text == "no"
