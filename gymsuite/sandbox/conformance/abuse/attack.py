"""An attack is one row: what an agent tries, and exactly what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gymsuite.sandbox.conformance.case import Body, InSandbox, expect, same
from gymsuite.sandbox.protocol import ExecResult, OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

MIB = 1 << 20
LIMITS: Mapping[str, object] = {
    "memory_bytes": 256 * MIB,
    "disk_bytes": 32 * MIB,
    "inodes": 3000,
    "pids": 64,
    "cpus": 1.0,
}
"""Small, so that an attack is over soon."""

FLAGS = ("timed_out", "truncated", "oom", "disk_full", "pids")
BROKEN = b"BROKEN"
"""What a script writes when it got through."""


@dataclass(frozen=True)
class Attack:
    """One row. `expected` is for people, `body` for machines.

    `differs` says, provider by provider, why one answers otherwise; its answer is as safe. An
    attack that is not `alone` may share its sandbox with others of its kind.
    """

    kind: str
    name: str
    expected: str
    body: Body
    needs: tuple[str, ...] = ()
    differs: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False


@dataclass(frozen=True)
class Answer:
    """What a command has to answer: its exit codes (none named: any), flags and words.

    `flags` are the limits that fired, and no other may, but those of `perhaps`.
    """

    exits: tuple[int, ...] = (0,)
    flags: tuple[str, ...] = ()
    says: bytes = b""
    perhaps: tuple[str, ...] = ()

    def fired(self, result: ExecResult) -> bool:
        """Whether every limit fired that has to."""
        return all(getattr(result, flag) for flag in self.flags)

    def check(self, result: ExecResult) -> None:
        """Raise `NotKept` unless a command answered so."""
        fired = {flag for flag in FLAGS if getattr(result, flag)}
        short = result._replace(stdout=result.stdout[-600:], stderr=result.stderr[-600:])
        expect(set(self.flags) <= fired <= {*self.flags, *self.perhaps}, short)
        expect(not self.exits or result.exit_code in self.exits, short)
        expect(self.says in result.stdout + result.stderr, short)
        expect(BROKEN not in result.stdout, short)


def inside(body: InSandbox) -> Body:
    """Let what runs in one sandbox have one."""

    async def run(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
        async with open_sandbox(spec) as sandbox:
            await body(sandbox)

    return run


def shell(script: str, answer: Answer | None = None, *, timeout: float = 60.0) -> Body:
    """Attack by a shell script."""
    return _command(script, answer or Answer(), timeout)


def python(script: str, answer: Answer | None = None, *, timeout: float = 60.0) -> Body:
    """Attack by a Python script."""
    return _command(("python3", "-c", script), answer or Answer(), timeout)


def _command(command: str | tuple[str, ...], answer: Answer, timeout: float) -> Body:
    async def body(sandbox: Sandbox) -> None:
        # On a busy machine, what goes on until its deadline may not have begun by then.
        for seconds in (timeout, 5 * timeout, 25 * timeout):
            result = await sandbox.exec(command, timeout=seconds)
            if answer.fired(result) or not result.timed_out:
                break
        answer.check(result)

    return inside(body)


async def usable(sandbox: Sandbox) -> None:
    """End what an attack left running, and raise `NotKept` unless the sandbox goes on."""
    await sandbox.changes("/nowhere")
    tidy = (
        "places='/workspace /tmp /root /dev/shm'; chmod 700 $places;"
        "find $places -xdev -mindepth 1 -depth -delete 2> /dev/null; echo alive"
    )
    result = await sandbox.exec(tidy, timeout=60.0, cwd="/")
    same(result.stdout, b"alive\n")
    await sandbox.write("file", b"written")
    same(await sandbox.read("file"), b"written")
