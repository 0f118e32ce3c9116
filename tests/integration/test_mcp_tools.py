"""Foreign MCP servers as an environment's tools: live, shared, recorded and replayed."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gymsuite import (
    DefinitionError,
    Environment,
    Episode,
    InfrastructureError,
    Limits,
    Message,
    OpenSandbox,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    UsageError,
    submit,
)
from gymsuite.mcp.asking import list_tools
from gymsuite.mcp.cassette import by_history, by_request, recorded, replayed
from gymsuite.mcp.desk import Desk, Offer
from gymsuite.mcp.listing import Listing
from gymsuite.mcp.live import per_episode, shared
from gymsuite.mcp.manifest import AddressServer, CommandServer, ServerEntry, read_manifest
from gymsuite.mcp.places import in_sandbox, on_host, reach
from gymsuite.mcp.redaction import without_secrets
from gymsuite.mcp.requests import OpenServers
from gymsuite.mcp.serving import Door, open_sessions
from gymsuite.mcp.toolset import mcp_tools
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.worlds.procedural import places
from tests import foreign_server
from tests.command_line import gymsuite, make_suite

from .conftest import Provider

SCRIPT = Path(foreign_server.__file__)
KEY = "sk-abc123"
STRANGER = CommandServer(command=sys.executable, args=(str(SCRIPT),), env={"API_KEY": KEY})
LIMITS = Limits()
ENTRIES: dict[str, ServerEntry] = {"stranger": STRANGER}


@pytest.fixture(scope="module")
def listing() -> Listing:
    return asyncio.run(list_tools(ENTRIES, reach))


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    return Score(reward=1.0, passed=True)


@asynccontextmanager
async def no_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise AssertionError("nothing here needs one")
    yield


def environment(
    listing: Listing, open_servers: OpenServers, limits: Limits = LIMITS
) -> Environment:
    tools = (*mcp_tools(listing, open_servers), submit)
    task = Task(id="t", prompt="Use the tools.")
    spec = SandboxSpec(image="fixture")
    return Environment("test/mcp-v1", [task], verify, tools=tools, limits=limits, sandbox=spec)


async def call(episode: Episode, name: str, **arguments: object) -> str:
    action = Message(
        role="assistant", tool_calls=(ToolCall(id="1", name=name, arguments=arguments),)
    )
    return (await episode.step(action)).observation.messages[0].text


Play = Callable[[Episode], Awaitable[Any]]


def play(made: Environment, *plays: Play, open_sandbox: OpenSandbox = no_sandbox) -> Sequence[Any]:
    """Play episodes one after another in one event loop."""

    async def run() -> list[Any]:
        results = []
        for one in plays:
            async with asyncio.timeout(60), Episode(made, open_sandbox) as episode:
                await episode.reset(made.tasks[0], 0)
                results.append(await one(episode))
        return results

    return asyncio.run(run())


async def take_notes(episode: Episode) -> list[str]:
    return [
        await call(episode, "notes_all"),
        await call(episode, "note", text="a"),
        await call(episode, "notes_all"),
        await call(episode, "note", text="b"),
        await call(episode, "notes_all"),
    ]


NOTED = ["", "note 1", "a", "note 2", "a, b"]


def test_models_see_the_tools_that_the_server_lists(listing: Listing) -> None:
    made = environment(listing, per_episode(ENTRIES, listing, on_host))
    schemas = {schema.name: schema for schema in made.toolbox.schemas}
    assert list(schemas) == [
        *("note", "notes_all", "secret", "fail", "picture", "long", "sleep", "die"),
        *("stranger__submit", "submit"),
    ]
    assert schemas["note"].parameters == foreign_server.TEXT


def test_two_servers_with_the_same_tools_are_told_apart(listing: Listing) -> None:
    both = Listing(
        servers={"one": listing.servers["stranger"][:1], "two.x": listing.servers["stranger"][:1]}
    )
    made = environment(both, shared({"one": STRANGER, "two.x": STRANGER}, both))
    assert [s.name for s in made.toolbox.schemas] == ["one__note", "two_x__note", "submit"]

    async def both_play(episode: Episode) -> list[str]:
        return [await call(episode, name, text="a") for name in ("one__note", "two_x__note")]

    assert play(made, both_play) == [["note 1", "note 1"]]


def test_each_episode_has_a_server_of_its_own(listing: Listing) -> None:
    made = environment(listing, per_episode(ENTRIES, listing, on_host))
    assert play(made, take_notes, take_notes) == [NOTED, NOTED]


def test_shared_servers_are_the_same_for_all_episodes(listing: Listing) -> None:
    made = environment(listing, shared(ENTRIES, listing))

    async def one_note(episode: Episode) -> str:
        (fork,) = await episode.fork(1)
        async with fork:
            return await call(fork, "note", text="x")

    assert play(made, one_note, one_note) == ["note 1", "note 2"]


def test_an_episode_with_servers_of_its_own_is_not_forked(listing: Listing) -> None:
    made = environment(listing, per_episode(ENTRIES, listing, on_host))

    async def fork(episode: Episode) -> None:
        await call(episode, "note", text="x")
        with pytest.raises(UsageError, match="cannot be forked"):
            await episode.fork(2)

    play(made, fork)


@pytest.mark.local
def test_a_server_in_the_sandbox_ends_with_it(listing: Listing, local: Provider) -> None:
    inside: dict[str, ServerEntry] = {
        "stranger": CommandServer(command="python3", args=("/workspace/server.py",))
    }
    made = environment(listing, per_episode(inside, listing, in_sandbox))

    code = SCRIPT.read_bytes()

    async def prepare(task: Task, sandbox: Sandbox) -> None:
        await sandbox.write("server.py", code)

    made = Environment(
        "test/mcp-v1", made.tasks, verify, tools=made.tools, sandbox=made.sandbox, prepare=prepare
    )
    assert play(made, take_notes, take_notes, open_sandbox=local.open) == [NOTED, NOTED]


def test_a_mistake_is_an_observation_and_a_picture_is_named(listing: Listing) -> None:
    limits = Limits(output_bytes=1000, command_seconds=0.3)
    made = environment(listing, per_episode(ENTRIES, listing, on_host), limits)

    async def err(episode: Episode) -> None:
        assert await call(episode, "fail") == "error: something is wrong"
        assert await call(episode, "picture") == "[image: image/png, 3 bytes]"
        long = await call(episode, "long")
        assert len(long) < 1100
        assert "[99000 bytes left out]" in long
        assert (await call(episode, "stranger__submit")).startswith("error: ")
        assert await call(episode, "sleep") == "error: no reply within 0.3 seconds"
        assert await call(episode, "fail") == "error: something is wrong"

    play(made, err)


def test_a_server_that_dies_is_nobodys_wrong_answer(listing: Listing) -> None:
    made = environment(listing, per_episode(ENTRIES, listing, on_host))

    async def die(episode: Episode) -> None:
        await call(episode, "note", text="x")
        with pytest.raises(InfrastructureError, match="'stranger' broke"):
            await call(episode, "die")
        with pytest.raises(InfrastructureError, match="'stranger' broke"):
            await call(episode, "note", text="y")

    play(made, die)


@pytest.mark.parametrize(
    "entry",
    [
        CommandServer(command="/nowhere/at/all"),
        CommandServer(command=sys.executable, args=("-c", "print('hello')")),
        CommandServer(command=sys.executable, args=("-c", "import time; time.sleep(60)")),
        AddressServer(url="http://127.0.0.1:9/mcp"),
    ],
)
def test_a_server_that_does_not_come_up_is_a_failure(listing: Listing, entry: ServerEntry) -> None:
    limits = Limits(reset_seconds=1)
    made = environment(listing, per_episode({"stranger": entry}, listing, on_host), limits)

    async def begin(episode: Episode) -> None:
        with pytest.raises(InfrastructureError, match="'stranger'"):
            await call(episode, "note", text="x")

    play(made, begin)


def test_no_server_is_left_when_its_episode_is(listing: Listing, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    begin = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); "
    silent = CommandServer(
        command=sys.executable, args=("-c", begin + "import time; time.sleep(60)")
    )
    talking = CommandServer(
        command=sys.executable, args=("-c", begin + f"exec(open({str(SCRIPT)!r}).read())")
    )

    async def run(entry: ServerEntry) -> None:
        opened = per_episode({"stranger": entry}, listing, on_host)
        made = environment(listing, opened, Limits(reset_seconds=2))
        async with Episode(made, no_sandbox) as episode:
            await episode.reset(made.tasks[0], 0)
            with contextlib.suppress(InfrastructureError):
                await call(episode, "note", text="x")
        number = int(pid.read_text())
        async with asyncio.timeout(30):
            while Path(f"/proc/{number}").exists():  # noqa: ASYNC110, ASYNC240 - of another process
                await asyncio.sleep(0.05)

    for entry in (silent, talking):
        asyncio.run(run(entry))


def test_a_server_whose_tools_changed_since_they_were_listed_is_refused(listing: Listing) -> None:
    note = listing.servers["stranger"][0]
    older = note.model_copy(update={"parameters": {"type": "object", "properties": {}}})
    gone = note.model_copy(update={"name": "gone"})
    for tool, complaint in ((older, "takes other arguments"), (gone, "is gone")):
        stale = Listing(servers={"stranger": (tool,)})
        made = environment(stale, per_episode(ENTRIES, stale, on_host))

        async def begin(episode: Episode, name: str = tool.name, what: str = complaint) -> None:
            with pytest.raises(InfrastructureError, match=what):
                await call(episode, name, text="x")

        play(made, begin)


def test_a_server_with_an_address_is_spoken_to_over_http() -> None:
    served = Environment("test/served-v1", [Task(id="t", prompt="p")], verify)

    async def run() -> str:
        desk = Desk(Offer(served, places(served.tasks), no_sandbox), lambda name, record: None)
        async with desk, open_sessions(desk, Door("127.0.0.1", 0, "sesame")) as url:
            headers = {"Authorization": "Bearer sesame"}
            entries: dict[str, ServerEntry] = {"far": AddressServer(url=url, headers=headers)}
            found = await list_tools(entries, reach)
            made = environment(found, per_episode(entries, found, on_host))
            async with Episode(made, no_sandbox) as episode:
                await episode.reset(made.tasks[0], 0)
                return await call(episode, "far__submit", answer="x")

    assert asyncio.run(run()) == "submitted"


def test_what_was_recorded_is_replayed_without_any_server(listing: Listing, tmp_path: Path) -> None:
    cassette = tmp_path / "cassette.jsonl"
    live = per_episode(ENTRIES, listing, on_host)
    taping = environment(listing, recorded(live, cassette, by_history))
    assert play(taping, take_notes, take_notes) == [NOTED, NOTED]
    assert len(cassette.read_text().splitlines()) == 5
    offline = environment(listing, replayed(cassette, by_history))
    assert play(offline, take_notes) == [NOTED]


def test_a_replay_answers_only_what_was_asked_in_that_order(
    listing: Listing, tmp_path: Path
) -> None:
    cassette = tmp_path / "cassette.jsonl"
    live = per_episode(ENTRIES, listing, on_host)
    play(environment(listing, recorded(live, cassette, by_history)), take_notes)
    offline = environment(listing, replayed(cassette, by_history))

    async def otherwise(episode: Episode) -> None:
        assert await call(episode, "notes_all") == ""
        (fork,) = await episode.fork(1)
        async with fork:
            assert await call(fork, "note", text="a") == "note 1"
        with pytest.raises(
            InfrastructureError, match=r"cassette.jsonl: .* note\(.*\"b\""
        ) as caught:
            await call(episode, "note", text="b")
        assert not caught.value.retryable

    play(offline, otherwise)


def test_answers_of_servers_that_change_nothing_are_found_in_any_order(
    listing: Listing, tmp_path: Path
) -> None:
    cassette = tmp_path / "cassette.jsonl"

    async def look(episode: Episode) -> list[str]:
        return [await call(episode, "fail"), await call(episode, "picture")]

    async def look_again(episode: Episode) -> list[str]:
        return [await call(episode, "picture"), await call(episode, "fail")][::-1]

    taping = environment(listing, recorded(shared(ENTRIES, listing), cassette, by_request))
    offline = environment(listing, replayed(cassette, by_request)) if cassette.exists() else None
    assert offline is None
    seen = play(taping, look)
    assert play(environment(listing, replayed(cassette, by_request)), look_again) == seen


def test_secrets_are_in_no_cassette_and_in_no_observation(listing: Listing, tmp_path: Path) -> None:
    cassette = tmp_path / "cassette.jsonl"
    live = per_episode(ENTRIES, listing, on_host)
    taping = recorded(live, cassette, by_history, without_secrets(ENTRIES))

    async def leak(episode: Episode) -> list[str]:
        return [await call(episode, "secret"), await call(episode, "note", text=f"my {KEY}!")]

    assert play(environment(listing, taping), leak) == [["the key is [API_KEY], thanks", "note 1"]]
    assert KEY not in cassette.read_text()
    assert "my [API_KEY]!" in cassette.read_text()


def test_secrets_that_json_spells_otherwise_and_numbers_that_look_like_them(
    listing: Listing, tmp_path: Path
) -> None:
    cassette = tmp_path / "cassette.jsonl"
    settings = {"API_KEY": 'a"b\\c4', "PIN_TOKEN": "1234"}
    entries: dict[str, ServerEntry] = {"stranger": STRANGER.model_copy(update={"env": settings})}
    live = per_episode(entries, listing, on_host)
    taping = recorded(live, cassette, by_history, without_secrets(entries))

    async def leak(episode: Episode) -> list[str]:
        return [
            await call(episode, "note", text='my a"b\\c4!', parts=[["1234"]]),
            await call(episode, "fail", number=12345),
        ]

    play(environment(listing, taping), leak)
    lines = cassette.read_text().splitlines()
    asked = [json.loads(line)["request"]["arguments"] for line in lines]
    assert asked == [{"text": "my [API_KEY]!", "parts": [["[PIN_TOKEN]"]]}, {"number": 12345}]


def test_answers_with_any_line_separator_are_replayed(listing: Listing, tmp_path: Path) -> None:
    cassette = tmp_path / "cassette.jsonl"

    async def separate(episode: Episode) -> str:
        await call(episode, "note", text="one\u2028two\x85three\nfour")
        return await call(episode, "notes_all")

    live = per_episode(ENTRIES, listing, on_host)
    (said,) = play(environment(listing, recorded(live, cassette, by_history)), separate)
    assert play(environment(listing, replayed(cassette, by_history)), separate) == [said]


@pytest.mark.parametrize(
    ("after", "seconds", "complaint"), [("60", 2, "within 2 seconds"), ("0", 60, "broke")]
)
def test_a_server_that_does_not_list_its_tools_is_a_failure(
    after: str, seconds: int, complaint: str
) -> None:
    settings = {"REFUSES_AFTER_SECONDS": after}
    entries: dict[str, ServerEntry] = {"stranger": STRANGER.model_copy(update={"env": settings})}
    with pytest.raises(InfrastructureError, match=complaint):
        asyncio.run(list_tools(entries, reach, seconds=seconds))


REPLAYING = '''
"""Take a note."""
import sys
from pathlib import Path
from gymsuite import OpenSandbox, Score, Submission, Task, ToolCall, submit
from gymsuite.mcp.cassette import by_history, replayed
from gymsuite.mcp.listing import read_listing
from gymsuite.mcp.toolset import mcp_tools

assert "mcp" not in sys.modules, "a replay needs no extra"
HERE = Path(__file__).parent
tools = (
    *mcp_tools(read_listing(HERE / "tools.json"), replayed(HERE / "cassette.jsonl", by_history)),
    submit,
)
names = ["notes_all", "note", "notes_all", "submit"]
solution = tuple(
    ToolCall(name=name, arguments={"text": "a"} if name == "note" else {}) for name in names
)
tasks = (Task(id="t", prompt="Note an a.", solution=solution),)

async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    return Score(reward=1.0, passed=True)
'''


def test_an_environment_of_a_cassette_needs_neither_servers_nor_the_extra(
    listing: Listing, tmp_path: Path
) -> None:
    registry = make_suite(tmp_path, REPLAYING)
    folder = tmp_path / "say_yes"
    (folder / "tools.json").write_text(listing.model_dump_json())
    live = per_episode(ENTRIES, listing, on_host)
    taping = environment(listing, recorded(live, folder / "cassette.jsonl", by_history))
    play(taping, take_notes)
    options = ("--registry", registry, "--agent", "oracle", "--out", tmp_path / "run", "--json")
    done = gymsuite("eval", "test/yes-v1", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mean_reward"] == 1.0


def test_a_cassette_that_is_none_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="no readable cassette"):
        replayed(tmp_path / "absent.jsonl", by_request)
    (tmp_path / "bad.jsonl").write_text('{"key": "x"}\n')
    with pytest.raises(DefinitionError, match=r"bad\.jsonl:1"):
        replayed(tmp_path / "bad.jsonl", by_request)


def test_a_manifest_is_read_as_clients_read_it(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    servers = {
        "files": {"command": "files", "args": ["${ROOT:-/srv}"], "env": {"KEY": "${KEY}"}},
        "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"X": "${env:KEY}"}},
        "off": {"command": "x", "disabled": True},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    found = read_manifest(path, {"KEY": "k"})
    assert found == {
        "files": CommandServer(command="files", args=("/srv",), env={"KEY": "k"}),
        "web": AddressServer(url="https://example.org/mcp", headers={"X": "k"}),
    }
    with pytest.raises(UsageError, match="'KEY' is not set"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "not a readable JSON"),
        ("[]", "mcpServers"),
        ('{"mcpServers": {"a": {}}}', "a `command` or a `url`"),
        ('{"mcpServers": {"a": {"command": 3}}}', "server 'a': command"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', "'sse' is not offered"),
    ],
)
def test_a_wrong_manifest_is_said(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(DefinitionError, match=complaint):
        read_manifest(path)
