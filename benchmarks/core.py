"""What the suite itself costs: CPU per rollout, import time, listing time."""

import asyncio
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gymsuite import (
    AgentFactory,
    Context,
    Environment,
    Message,
    Observation,
    OpenSandbox,
    Sandbox,
    SandboxError,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    rollout,
    submit,
)
from gymsuite.agents import AgentOptions, Seat, open_agent

ROLLOUTS, HTTP_ROLLOUTS, CONCURRENT, TURNS, REPEATS = 2048, 512, 64, 4, 5
IMPORT = ("-c", "import gymsuite")
CLI = (str(Path(sys.executable).with_name("gymsuite")),)


async def noop(context: Context, text: str) -> str:
    """Do nothing."""
    return "ok"


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    """Everything passes."""
    return Score(reward=1.0, passed=True)


@asynccontextmanager
async def no_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Refuse: nothing here needs one."""
    raise SandboxError("no sandbox in this benchmark")
    yield


class InstantAgent:
    """Calls the no-op tool until the last turn, then submits."""

    def __init__(self) -> None:
        self._turn = 0

    async def act(self, observation: Observation) -> Message:
        """Answer at once."""
        self._turn += 1
        call = ToolCall(id=str(self._turn), name="noop", arguments={"text": "x"})
        if self._turn == TURNS:
            call = ToolCall(id="end", name="submit")
        return Message(role="assistant", tool_calls=(call,))


ENVIRONMENT = Environment(
    id="bench/noop-v1",
    tasks=(Task(id="t", prompt="Do nothing."),),
    verifier=verify,
    tools=(noop, submit),
)


def cpu_seconds() -> float:
    """CPU time of this process, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def play(make_agent: AgentFactory, rollouts: int = ROLLOUTS) -> float:
    """CPU milliseconds per rollout, with its record as JSON."""
    gate = asyncio.Semaphore(CONCURRENT)

    async def one(seed: int) -> None:
        async with gate:
            record = await rollout(
                ENVIRONMENT, ENVIRONMENT.tasks[0], make_agent, no_sandbox, seed=seed
            )
            if record.score is None:
                raise RuntimeError(str(record.failure))
            record.model_dump_json()

    before = cpu_seconds()
    await asyncio.gather(*map(one, range(rollouts)))
    return (cpu_seconds() - before) / rollouts * 1000


async def play_over_http(port: str) -> float:
    """The same with a model behind HTTP on loopback, whose own CPU is not counted."""
    options = AgentOptions(model="stub", base_url=f"http://127.0.0.1:{port}/v1")
    async with open_agent("openai", options) as source:
        make_agent = source.seat(Seat(ENVIRONMENT, no_sandbox, 0, 0))
        return await play(make_agent, HTTP_ROLLOUTS)


def with_stub_server() -> float:
    """Run a stub server in a process of its own for as long as it is needed."""
    program = [sys.executable, str(Path(__file__).with_name("stub_server.py")), str(TURNS)]
    server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if server.stdout is None or server.stdin is None:
        raise RuntimeError("no pipes to the stub server")
    try:
        return asyncio.run(play_over_http(server.stdout.readline().strip()))
    finally:
        server.stdin.close()
        server.wait()


def command_seconds(*command: str) -> float:
    """The fastest of a few wall times: what the command costs on a quiet machine."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Print the table."""
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    costs = [asyncio.run(play(lambda _: InstantAgent())) for _ in range(REPEATS)]
    over_http = with_stub_server()
    bare = command_seconds(sys.executable, "-c", "pass")
    rows = [
        (
            f"CPU per {TURNS}-turn rollout, {CONCURRENT} concurrent",
            f"{statistics.median(costs):.2f} CPU-ms (min {min(costs):.2f})",
        ),
        ("the same with a model behind HTTP", f"{over_http:.2f} CPU-ms"),
        (
            "import gymsuite",
            f"{command_seconds(sys.executable, *IMPORT):.2f} s (Python alone {bare:.2f})",
        ),
        ("gymsuite list", f"{command_seconds(*CLI, 'list'):.2f} s"),
    ]
    for what, value in rows:
        print(f"{what:44} {value}")


if __name__ == "__main__":
    main()
