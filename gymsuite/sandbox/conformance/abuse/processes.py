"""Attacks by processes: more of them, in other sessions, with signals, above others."""

import asyncio

from gymsuite.sandbox.conformance.abuse.attack import Answer, Attack, inside, python, shell
from gymsuite.sandbox.conformance.case import PATIENCE, NotKept, expect
from gymsuite.sandbox.conformance.waiting import command_words
from gymsuite.sandbox.protocol import Sandbox

KIND = "processes"
# Who cannot count the memory of all processes together cannot count refused forks either.
_PIDS = ("pids", "memory_bytes")
_SESSIONS = """
import os, time
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            time.sleep(1000)
    except OSError:
        time.sleep(0.01)
"""
_VFORK = """
import os, sys
for _ in range(1000):
    try:
        os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    except OSError as error:
        sys.exit(str(error))
"""
_THREADS = """
import sys, threading, time
for _ in range(1000):
    try:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    except RuntimeError as error:
        sys.stderr.write(str(error)); sys.stderr.flush()
        import os; os._exit(1)
"""
_LEAVE_NONE = """
import os, time
while True:
    try:
        if os.fork() == 0:
            for stream in (0, 1, 2):
                os.close(stream)
            time.sleep(1000)
    except OSError:
        break
"""
_RISE = """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def tries(name, call):
    try:
        found = call()
    except (OSError, ValueError):
        return
    if found != -1:
        print("BROKEN", name)
tries("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
tries("nice of the server", lambda: os.setpriority(os.PRIO_PROCESS, 1, -10))
for name, policy in (("fifo", 1), ("rr", 2)):
    tries(name, lambda: os.sched_setscheduler(0, policy, os.sched_param(10)))
import platform
ioprio_set = {"x86_64": 251, "aarch64": 30}[platform.machine()]
tries("ionice", lambda: libc.syscall(ioprio_set, 1, 0, 1 << 13))
def adjust(process, value):
    with open(f"/proc/{process}/oom_score_adj", "w") as file:
        file.write(value)
tries("oom", lambda: adjust("self", "-1000"))
tries("oom below the server", lambda: adjust("self", "-1"))
tries("files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 22, 1 << 22)))
"""
_SINK = """
import ctypes, os, platform, resource
libc = ctypes.CDLL(None, use_errno=True)
ioprio_set = {"x86_64": 251, "aarch64": 30}[platform.machine()]
least = ctypes.byref(ctypes.c_int(0))
for name, call in (
    ("no files", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))),
    ("no memory", lambda: resource.prlimit(1, resource.RLIMIT_DATA, (0, 0))),
    ("no time", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))),
    ("one processor", lambda: os.sched_setaffinity(1, {0})),
    ("nice", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)),
    ("nice to all", lambda: os.setpriority(os.PRIO_USER, 0, 19)),
    ("idle", lambda: libc.sched_setscheduler(1, 5, least)),
    ("idle disk", lambda: libc.syscall(ioprio_set, 1, 1, 3 << 13)),
    ("idle disks of all", lambda: libc.syscall(ioprio_set, 3, 0, 3 << 13)),
):
    try:
        found = call()
    except (OSError, ValueError):
        continue
    if found != -1:
        print("BROKEN", name)
"""

_HIDE = """
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process, and not to the first
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execv("/bin/sleep", ["sleep", "4401"])
open("hidden", "w").close()
time.sleep(1000)
"""
_TIMERS = """
import ctypes, signal, time
libc = ctypes.CDLL(None)
signal.signal(signal.SIGALRM, lambda *_: signal.setitimer(signal.ITIMER_REAL, 0.0001))
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
while True:
    try:
        time.sleep(1000)
    except InterruptedError:
        pass
"""


async def _hides_behind_another(sandbox: Sandbox) -> None:
    for seconds in (0.5, 2.5, 12.5):
        result = await sandbox.exec(["python3", "-c", _HIDE], timeout=seconds)
        expect(result.timed_out, result)
        expect("4401" not in await command_words(sandbox), "what it hid is alive")
        if await sandbox.read("hidden") is not None:
            return
    raise NotKept("it did not begin")


async def _no_process_is_left_for_the_next(sandbox: Sandbox) -> None:
    await sandbox.exec(["python3", "-c", _LEAVE_NONE], timeout=PATIENCE)
    results = [await sandbox.exec("true", timeout=PATIENCE) for _ in range(3)]
    for result in results:
        expect(result.pids or result.exit_code == 0, result)
    expect(any(result.pids for result in results), results)


async def _every_signal_to_everyone(sandbox: Sandbox) -> None:
    script = "for s in $(seq 1 64); do kill -$s {}; done 2>/dev/null; exit 0"
    for target in ("1", "$PPID", "-1"):
        result = await sandbox.exec(script.format(target), timeout=1)
        expect(result.exit_code in (0, 137) or result.timed_out or result.exit_code > 128, result)
    result = await sandbox.exec("kill -STOP -1; sleep 1000", timeout=0.5)
    expect(result.timed_out or result.exit_code, result)


async def _stops_its_parent_again_and_again(sandbox: Sandbox) -> None:
    script = "while :; do kill -STOP $PPID; kill -CONT $PPID; done"
    attack = asyncio.create_task(sandbox.exec(script, timeout=1))
    beside = await sandbox.exec("echo beside", timeout=PATIENCE)
    expect(beside.stdout == b"beside\n", beside)
    expect((await attack).timed_out, "it did not meet its deadline")


ATTACKS = (
    Attack(
        KIND,
        "a shell that forks itself without end",
        "`pids`, `timed_out`; all dead at the deadline",
        shell(
            "b() { b | b & }; { b; } & exec sleep 1000",
            Answer((), ("timed_out", "pids")),
            timeout=0.7,
        ),
        _PIDS,
    ),
    Attack(
        KIND,
        "forks twice, each time into a session of its own",
        "`pids`, `timed_out`; all dead at the deadline",
        python(_SESSIONS, Answer((), ("timed_out", "pids")), timeout=0.7),
        _PIDS,
    ),
    Attack(
        KIND,
        "starts processes by vfork",
        "EAGAIN at the limit; `pids`",
        python(_VFORK, Answer((1,), ("pids",), b"temporarily unavailable")),
        _PIDS,
    ),
    Attack(
        KIND,
        "starts threads without end",
        "an error at the limit; `pids`",
        python(_THREADS, Answer((1,), ("pids",), b"can't start new thread")),
        _PIDS,
    ),
    Attack(
        KIND,
        "leaves no process for the next command",
        "the next is answered: it runs, or `pids`",
        inside(_no_process_is_left_for_the_next),
        _PIDS,
    ),
    Attack(
        KIND,
        "sends every signal to the first process, its parent and all others",
        "the sandbox goes on",
        inside(_every_signal_to_everyone),
    ),
    Attack(
        KIND,
        "stops and continues its parent without end",
        "`timed_out`; its neighbour runs",
        inside(_stops_its_parent_again_and_again),
    ),
    Attack(
        KIND,
        "ignores every signal that can be ignored",
        "`timed_out`",
        shell(
            "trap '' 1 2 3 13 14 15; while :; do :; done", Answer((), ("timed_out",)), timeout=0.5
        ),
    ),
    Attack(
        KIND,
        "adopts its orphans, in sessions of their own (subreaper)",
        "`timed_out`; all dead at the deadline",
        inside(_hides_behind_another),
    ),
    Attack(
        KIND,
        "sets alarms ten thousand times a second",
        "`timed_out`",
        python(_TIMERS, Answer((), ("timed_out",)), timeout=0.5),
    ),
    Attack(
        KIND,
        "leaves a daemon behind",
        "it ends before changes are read, or with the sandbox",
        shell("setsid nohup sleep 4391 > /dev/null 2>&1 &"),
    ),
    Attack(
        KIND,
        "makes itself more important: nice, real time, ionice, oom_score_adj, more open files",
        "each refused",
        python(_RISE),
    ),
    Attack(
        KIND,
        "makes the first process less important: prlimit, nice, idle, affinity",
        "each refused; the sandbox goes on",
        python(_SINK),
    ),
)
