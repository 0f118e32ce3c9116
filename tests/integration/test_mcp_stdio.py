"""Standard MCP clients start the command line as their server, and play episodes over stdio."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from gymsuite import Rollout
from gymsuite.mcp.listing import read_listing
from tests import foreign_server
from tests.command_line import command, gymsuite, make_suite, variables

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


@asynccontextmanager
async def over_stdio(folder: Path, *options: str, **more: str) -> AsyncIterator[ClientSession]:
    program, *arguments = command(
        *("mcp", "serve", "test/yes-v1", "--registry", make_suite(folder)),
        *("--results", folder / "results.jsonl"),
        *options,
    )
    server = StdioServerParameters(command=program, args=arguments, env=variables(**more))
    with (folder / "errors").open("w") as errors:
        async with stdio_client(server, errors) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


def said(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def records(path: Path) -> list[Rollout]:
    return [Rollout.model_validate_json(line) for line in path.read_text().splitlines()]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(limited())


def test_a_client_that_starts_its_server_plays_an_episode(tmp_path: Path) -> None:
    async def play() -> None:
        async with over_stdio(tmp_path, "--task", "t3") as session:
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == ["describe_task", "think", "submit"]
            assert tools[1].input_schema["required"] == ["thought"]
            assert said(await session.call_tool("describe_task")) == "Say yes, 3."
            assert said(await session.call_tool("think", {"thought": "x"})) == "thought about x"
            done = await session.call_tool("submit", {"answer": "yes"})
            assert (said(done), done.is_error) == ("submitted", False)
            late = await session.call_tool("think", {"thought": "y"})
            assert late.is_error
            assert "over" in said(late)

    run(play)
    (record,) = records(tmp_path / "results.jsonl")
    assert record.task == "t3"
    assert record.score is not None
    assert record.score.passed


def test_a_client_is_told_its_task_when_it_connects(tmp_path: Path) -> None:
    async def play() -> None:
        async with over_stdio(tmp_path, "--task", "t4") as session:
            assert (session.instructions or "").endswith("\n\nSay yes, 4.")
            (message,) = (await session.get_prompt("task")).messages
            assert isinstance(message.content, TextContent)
            assert message.content.text == "Say yes, 4."

    run(play)


def test_leaving_ends_and_scores_the_episode_for_its_owner_alone(tmp_path: Path) -> None:
    async def play() -> None:
        async with over_stdio(tmp_path) as session:
            await session.call_tool("think", {"thought": "x"})

    run(play)
    (record,) = records(tmp_path / "results.jsonl")
    assert record.score is not None
    assert (record.score.passed, record.truncation) == (False, "session_closed")
    assert (tmp_path / "results.jsonl").stat().st_mode & 0o077 == 0


def test_what_an_environment_prints_is_no_protocol(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    code = tmp_path / "say_yes" / "environment.py"
    noisy = code.read_text().replace("    await asyncio", "    print('noise')\n    await asyncio")

    async def play() -> None:
        program, *arguments = command("mcp", "serve", "test/yes-v1", "--registry", suite)
        code.write_text(noisy)
        server = StdioServerParameters(command=program, args=arguments, env=variables())
        with (tmp_path / "errors").open("w") as errors:
            async with stdio_client(server, errors) as streams, ClientSession(*streams) as session:
                await session.initialize()
                assert said(await session.call_tool("think", {"thought": "x"})).endswith("x")

    run(play)
    assert "noise" in (tmp_path / "errors").read_text()


def test_mistakes_are_results_and_the_episode_goes_on(tmp_path: Path) -> None:
    async def play() -> None:
        async with over_stdio(tmp_path) as session:
            for name, arguments in (
                ("thnik", {"thought": "x"}),
                ("think", {}),
                ("think", {"thought": 3}),
                ("think", {"thought": "x", "more": 1}),
            ):
                result = await session.call_tool(name, arguments)
                assert result.is_error, (name, arguments)
                assert said(result).startswith("error: ")
            huge = await session.call_tool("think", {"thought": "x" * 1_000_000})
            assert len(said(huge)) > 1_000_000
            many = [session.call_tool("think", {"thought": f"{n}"}) for n in range(40)]
            assert [said(r)[14:] for r in await asyncio.gather(*many)] == [*map(str, range(40))]
            await session.call_tool("submit", {"answer": "yes"})

    run(play)
    assert [record.score.passed for record in records(tmp_path / "results.jsonl") if record.score]


def test_lines_that_are_no_messages_do_not_end_a_session(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    process = subprocess.Popen(
        command("mcp", "serve", "test/yes-v1", "--registry", registry),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables(),
    )
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    sent = [json.dumps(message).encode() for message in (INITIALIZE, ready, listing)]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n".join([b"hello", b"{}", b"\xff\xfe", b"[1]", *sent]) + b"\n")
    process.stdin.flush()
    seen = ""
    while '"tools":[' not in seen:
        seen += process.stdout.readline().decode()
    _, errors = process.communicate(timeout=30)
    assert b"Traceback" not in errors
    assert process.returncode == 0


def test_a_broken_environment_is_a_failure_and_no_reward(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    code = tmp_path / "say_yes" / "environment.py"
    broken = code.read_text().replace('return "thought about " + thought', "raise OSError('gone')")

    async def play() -> None:
        program, *arguments = command(
            *("mcp", "serve", "test/yes-v1", "--registry", registry),
            *("--results", tmp_path / "results.jsonl"),
        )
        code.write_text(broken)
        server = StdioServerParameters(command=program, args=arguments, env=variables())
        with (tmp_path / "errors").open("w") as errors:
            async with stdio_client(server, errors) as streams, ClientSession(*streams) as session:
                await session.initialize()
                result = await session.call_tool("think", {"thought": "x"})
                assert result.is_error
                assert "does not count" in said(result)

    run(play)
    (record,) = records(tmp_path / "results.jsonl")
    assert record.score is None
    assert record.failure is not None


def test_the_command_line_serves_http_and_says_where(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    arguments = ["mcp", "serve", "test/yes-v1", "--registry", str(registry)]
    where = ["--http", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    with subprocess.Popen(
        command(*arguments, *where), stdout=subprocess.PIPE, text=True, env=variables()
    ) as process:
        try:
            assert process.stdout is not None
            served, control = process.stdout.readline(), process.stdout.readline()
            assert served.startswith("test/yes-v1 at http://127.0.0.1:")
            assert httpx.post(served.split()[-1], json={}).status_code == 400
            _, _, address, _, token = control.split()
            headers = {"Authorization": f"Bearer {token}"}
            reply = httpx.get(address.rstrip(","), headers=headers)
            assert reply.json() == {"episodes": []}
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130


def test_wrong_options_are_said_before_anything_is_served(tmp_path: Path) -> None:
    for options, complaint in (
        (["--http", "0.0.0.0:0"], "give a token"),
        (["--task", "t99"], "no such task"),
        (["--control", "127.0.0.1:0"], "GYMSUITE_MCP_CONTROL_TOKEN"),
    ):
        done = gymsuite(
            "mcp",
            "serve",
            "test/yes-v1",
            "--registry",
            make_suite(tmp_path),
            *options,
            cwd=tmp_path,
        )
        assert done.returncode == 2
        assert complaint in done.stderr


def test_an_episode_is_scored_though_the_client_kills_its_server(tmp_path: Path) -> None:
    registry, results = make_suite(tmp_path), tmp_path / "results.jsonl"
    code = tmp_path / "say_yes" / "environment.py"
    code.write_text(
        code.read_text().replace("    passed =", "    await asyncio.sleep(1)\n    passed =")
    )
    process = subprocess.Popen(
        command("mcp", "serve", "test/yes-v1", "--registry", registry, "--results", results),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=variables(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    assert b"serverInfo" in process.stdout.readline()
    process.stdin.close()
    process.kill()
    process.wait(30)
    assert process.stdout.read() == b""  # comes to its end with the last process that has it
    process.stdout.close()
    (record,) = records(results)
    assert record.score is not None
    assert record.truncation == "session_closed"


def test_a_manifests_tools_are_listed(tmp_path: Path) -> None:
    servers = {"stranger": {"command": sys.executable, "args": [foreign_server.__file__]}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    done = gymsuite("mcp", "tools", "mcp.json", "--out", "tools.json", cwd=tmp_path)
    assert done.stdout == "tools.json: stranger 9\n"
    assert read_listing(tmp_path / "tools.json").servers["stranger"][0].name == "note"
