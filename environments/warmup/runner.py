"""Runs in the sandbox, as a program: calls one function, each time in a process of its own.

Standard input is one JSON object. Standard output is "ready", then one line for each call:
its number, "value" or "error", and JSON. What is expected is not known here, so nothing that the
called code does to this process or its output can make a wrong answer right.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time


class Job:
    """What to call, with what, and within which bounds."""

    def __init__(  # noqa: PLR0913 - the keys of the JSON object
        self,
        *,
        path: str,
        function: str,
        calls: "list[object]",
        call_seconds: float,
        call_cpu_seconds: float,
        total_seconds: float,
        memory_bytes: int,
        result_bytes: int,
    ) -> None:
        self.path = path
        self.function = function
        self.calls = calls
        self.call_seconds = call_seconds
        self.call_cpu_seconds = call_cpu_seconds
        self.total_seconds = total_seconds
        self.memory_bytes = memory_bytes
        self.result_bytes = result_bytes


def main() -> None:
    """Answer every call, or stop when `total_seconds` are over."""
    job = Job(**json.load(sys.stdin))
    with open(job.path, "rb") as file:  # noqa: PTH123 - pathlib would double the start-up time
        source = file.read()
    say("ready")
    ends = time.monotonic() + job.total_seconds
    for number, argument in enumerate(job.calls):
        seconds = min(job.call_seconds, ends - time.monotonic())
        if seconds <= 0:
            return
        say(f"{number} {call_apart(job, source, argument, seconds)}")


def say(line: str) -> None:
    """Write one line, past any buffer that a child could flush again."""
    os.write(1, line.encode() + b"\n")


def call_apart(job: Job, source: bytes, argument: object, seconds: float) -> str:
    """Call in a child and return its line; the child and its process group are killed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(reader)
        answer(job, source, argument, writer)
    os.close(writer)
    line = read_line(reader, job.result_bytes, time.monotonic() + seconds)
    os.close(reader)
    status = reap(pid, patient=line is None)
    if line is not None:
        return line
    slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGPROF, signal.SIGKILL}
    return 'error "it took too long"' if slow else 'error "its process ended without a result"'


def answer(job: Job, source: bytes, argument: object, writer: int) -> None:
    """Load the file and call the function; never returns."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    resource.setrlimit(resource.RLIMIT_AS, (job.memory_bytes, job.memory_bytes))
    signal.setitimer(signal.ITIMER_PROF, job.call_cpu_seconds)
    try:
        namespace: dict[str, object] = {"__name__": "solution"}
        exec(compile(source, job.path, "exec"), namespace)  # noqa: S102 - what it is for
        value = namespace[job.function](argument)  # type: ignore[operator]  # its error is the answer
        line = "value " + json.dumps(value, sort_keys=True, allow_nan=False)
    except BaseException as error:  # noqa: BLE001 - whatever the called code raises is its answer
        line = "error " + json.dumps(f"{type(error).__name__}: {error}"[:200])
    data = line.encode() + b"\n"
    while data:
        data = data[os.write(writer, data) :]
    os._exit(0)


def read_line(reader: int, most: int, ends: float) -> "str | None":
    """The child's line, or None when it died or did not answer in time."""
    data = b""
    while not data.endswith(b"\n"):
        seconds = ends - time.monotonic()
        if seconds <= 0 or not select.select([reader], [], [], seconds)[0]:
            return None
        piece = os.read(reader, 65536)
        if not piece:
            return None
        data += piece
        if len(data) > most:
            return f'error "its result is longer than {most} bytes"'
    return data[:-1].decode("ascii", "replace")


def reap(pid: int, *, patient: bool) -> int:
    """Kill the child with its group and return its status; a dying one may have its own."""
    for _ in range(20 if patient else 0):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it died before it had a group
        os.killpg(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


main()
