"""Search: our index against rank_bm25 and bm25s over 100,000 real passages, and the server.

    python benchmarks/search.py [--corpus CORPUS.jsonl] [--keep FOLDER]

Without a corpus, documentation packages of this Debian or Ubuntu are downloaded with `apt-get
download` and cut into passages of about 100 words. The peers are installed into a virtual
environment that is thrown away. CPU times and ratios compare; wall times need a quiet machine.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gymsuite import (
    Environment,
    Limits,
    Message,
    OpenSandbox,
    Sandbox,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    rollout,
)
from gymsuite.errors import SandboxError, Truncated
from gymsuite.search import Corpus, Document, Library, search_tools, text_protocol
from gymsuite.search.corpus import digest
from gymsuite.types import Action, Observation

PASSAGES, QUERIES = 100_000, 1000
CLIENTS, REQUESTS = 64, 6000
EPISODES = 400
PEERS = ("rank-bm25", "bm25s", "numba", "numpy")
HERE = Path(__file__).parent


def sample(folder: Path, corpus: Path | None) -> tuple[Path, Path]:
    """100,000 distinct passages, and known-item queries: words of one of them."""
    rng = random.Random(7)
    if corpus is None:
        corpus = folder / "all.jsonl"
        script = str(HERE / "search_passages.py")
        subprocess.run([sys.executable, script, str(folder), str(corpus)], check=True)
    found = _read(corpus)
    distinct = {" ".join(re.findall(r"\w+", row["text"].lower())): row for row in found}
    chosen = list(distinct.values())
    rng.shuffle(chosen)
    chosen = chosen[:PASSAGES]
    queries: list[dict[str, str]] = []
    for row in rng.sample(chosen, min(len(chosen), 2 * QUERIES)):
        words = re.findall(r"[a-zA-Z]{3,}", row["text"])
        if len(words) >= 10 and len(queries) < QUERIES:  # noqa: PLR2004 - enough to draw from
            asked = " ".join(rng.sample(words, rng.randint(4, 9)))
            queries.append({"id": row["id"], "query": asked})
    return _write(folder / "corpus.jsonl", chosen), _write(folder / "queries.jsonl", queries)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _write(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def engine(python: str, name: str, *arguments: str) -> dict[str, Any]:
    """Measure one engine in a process of its own."""
    command = [python, str(HERE / "search_engines.py"), name, *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def engines(folder: Path, corpus: Path, queries: Path) -> None:
    """Print ours beside the peers, and the ratios."""
    rows = sorted((Document.model_validate(row) for row in _read(corpus)), key=lambda row: row.id)
    pinned = digest(row.line() for row in rows)
    paths = (str(corpus), str(queries))
    # What building leaves in memory is not what the index needs: the second process only opens it.
    built = engine(sys.executable, "gymsuite", *paths, str(folder), pinned)
    opened = engine(sys.executable, "gymsuite", *paths, str(folder), pinned)
    table = {"gymsuite": opened | {"build_cpu_seconds": built["build_cpu_seconds"]}}
    with tempfile.TemporaryDirectory() as peers:
        venv.create(peers, with_pip=True)
        python = str(Path(peers) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
        for name in ("bm25s-numba", "bm25s", "rank_bm25"):
            table[name] = engine(python, name, *paths)
    columns = list(opened)
    print(f"\n{len(rows)} passages\n{'':14}" + "".join(f"{c:>24}" for c in columns))
    for name, row in table.items():
        print(f"{name:14}" + "".join(f"{row[c]:>24}" for c in columns))
    ours = table["gymsuite"]
    for name, row in table.items():
        if name != "gymsuite":
            speed = ours["queries_per_cpu_second"] / row["queries_per_cpu_second"]
            memory = row["resident_mb"] / max(ours["resident_mb"], 1)
            print(f"{speed:8.1f} x the queries of {name}, in 1/{memory:.1f} of its memory")


async def _client(host: str, port: int, bodies: Sequence[bytes], times: list[float]) -> int:
    """Ask on one connection, one request after the other; returns how many failed."""
    reader, writer = await asyncio.open_connection(host, port)
    failed = 0
    for body in bodies:
        head = f"POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
        began = time.perf_counter()
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
        data = await reader.readexactly(int(length[1]) if length else 0)
        times.append(time.perf_counter() - began)
        failed += not (b" 200 " in answer[:15] and data.startswith(b'{"result":'))
    writer.close()
    return failed


def _cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(folder: Path, corpus: Path, queries: Path) -> None:
    """Ask a server in another process with 64 clients at once, then end it."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "search_server.py"), str(corpus), str(folder),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        if server.stdout is None:
            raise SystemExit("the server has no output to say its address on")
        address = (await server.stdout.readline()).decode().strip()
        host, _, port = address.removeprefix("http://").partition(":")
        asked = [row["query"] for row in _read(queries)]
        bodies = [
            json.dumps({"queries": [asked[n % len(asked)]], "topk": 3, "return_scores": True})
            for n in range(REQUESTS)
        ]
        times: list[float] = []
        idle, began = _cpu_seconds(server.pid), time.perf_counter()
        failed = await asyncio.gather(
            *(
                _client(host, int(port), [b.encode() for b in bodies[n::CLIENTS]], times)
                for n in range(CLIENTS)
            )
        )
        wall = time.perf_counter() - began
        cpu = _cpu_seconds(server.pid) - idle
    finally:
        server.terminate()
        await server.wait()
    times.sort()
    print(
        f"\nserver: {REQUESTS / wall:.0f} requests a second, {CLIENTS} clients at once, "
        f"{sum(failed)} errors, {REQUESTS / cpu:.0f} for each of its CPU-seconds; "
        f"p50 {times[len(times) // 2] * 1e3:.0f} ms, "
        f"p95 {times[int(len(times) * 0.95)] * 1e3:.0f} ms"
    )


class _Script:
    """Searches, opens, finds and submits."""

    def __init__(self) -> None:
        self._calls = iter(
            (
                ToolCall(id="1", name="search", arguments={"query": "grey heron weir"}),
                ToolCall(id="2", name="open", arguments={"document": "#1"}),
                ToolCall(id="3", name="find", arguments={"document": "#1", "text": "weir"}),
                ToolCall(id="4", name="submit", arguments={"answer": "x", "citations": ["#1"]}),
            )
        )

    async def act(self, _: Observation) -> Action:
        """Make the next call."""
        call = next(self._calls, None)
        if call is None:
            raise Truncated("the script ends here")
        return Message(role="assistant", tool_calls=(call,))


@asynccontextmanager
async def no_sandbox(_: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Refuse: nothing here needs one."""
    raise SandboxError("none here")
    yield


async def _verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    passed = submission.answer == task.hidden["answer"]
    return Score(reward=float(passed), passed=passed)


async def episodes(folder: Path) -> None:
    """Print what a scripted episode of four turns costs, over an index of ten documents."""
    text = "The grey heron nests in the alder by the weir. " * 8
    library = Library(
        Corpus("ten", lambda: [Document(id=str(n), title=f"T{n}", text=text) for n in range(10)]),
        lambda: folder,
    )
    environment = Environment(
        id="bench/search-v1",
        tasks=(Task(id="t", prompt="?", hidden={"answer": "x"}),),
        verifier=_verify,
        tools=search_tools(library),
        respond=text_protocol(library),
        limits=Limits(max_steps=10),
    )
    task = environment.tasks[0]
    await rollout(environment, task, lambda _: _Script(), no_sandbox)
    began = time.process_time()
    for seed in range(EPISODES):
        record = await rollout(environment, task, lambda _: _Script(), no_sandbox, seed=seed)
        if record.score is None or not record.score.passed:
            raise SystemExit(f"the scripted episode failed: {record.failure}")
    milliseconds = (time.process_time() - began) / EPISODES * 1e3
    print(f"a scripted episode of four turns: {milliseconds:.2f} CPU-ms")


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as thrown_away:
        folder = chosen.keep or Path(thrown_away)
        folder.mkdir(parents=True, exist_ok=True)
        corpus, queries = sample(folder, chosen.corpus)
        engines(folder, corpus, queries)
        asyncio.run(load(folder, corpus, queries))
        asyncio.run(episodes(folder))


if __name__ == "__main__":
    main()
