"""A case is one promise that a provider of sandboxes keeps, breaks, or declares not to make."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gymsuite.sandbox.protocol import ExecResult, OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

PATIENCE = 60.0
"""Seconds for what takes none: a machine may be busy."""

Body = Callable[[OpenSandbox, SandboxSpec], Awaitable[None]]
InSandbox = Callable[[Sandbox], Awaitable[None]]


class Verdict(StrEnum):
    """What became of a case. A gap that a provider declares is never `passed`."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_OFFERED = "not offered"
    NOT_ENFORCED = "not enforced"


class NotKept(Exception):  # noqa: N818 - a state, read as "the promise is not kept"
    """What was promised did not happen."""


class NotOffered(Exception):  # noqa: N818 - the same
    """The provider said that it cannot do this, in the way that the protocol has for it."""


@dataclass(frozen=True)
class Case:
    """One promise. `needs` are the limits without which it cannot be kept."""

    group: str
    name: str
    body: Body
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What became of one case, and why."""

    group: str
    name: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0


def over(group: str, body: Body, *, needs: tuple[str, ...] = ()) -> Case:
    """Make a case that opens its sandboxes itself."""
    return Case(group, sentence(body), body, needs)


def inside(
    group: str,
    body: InSandbox,
    *,
    needs: tuple[str, ...] = (),
    limits: Mapping[str, object] | None = None,
) -> Case:
    """Make a case that runs in one fresh sandbox, with some limits of its own."""

    async def run(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
        async with open_sandbox(spec.model_copy(update=dict(limits or {}))) as sandbox:
            await body(sandbox)

    return Case(group, sentence(body), run, needs)


def sentence(body: Callable[..., object]) -> str:
    """Read a function's name as the promise that it is."""
    return getattr(body, "__name__", "").strip("_").replace("_", " ")


def expect(kept: object, what: object) -> None:
    """Raise `NotKept`, which says what was found instead, unless a promise is kept."""
    if not kept:
        raise NotKept(str(what))


def same(found: object, promised: object) -> None:
    """Raise `NotKept` unless both are equal."""
    if found != promised:
        raise NotKept(f"found {_short(found)} and not {_short(promised)}")


def _short(value: object, most: int = 600) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


async def shell(sandbox: Sandbox, script: str, *, timeout: float = PATIENCE) -> ExecResult:
    """Run a script, whatever its exit code."""
    return await sandbox.exec(script, timeout=timeout)


async def done(sandbox: Sandbox, script: str) -> bytes:
    """Run a script that has to succeed, and return what it wrote."""
    result = await sandbox.exec(script, timeout=PATIENCE)
    expect(result.exit_code == 0, result)
    return result.stdout


async def python(
    sandbox: Sandbox, script: str, *words: str, timeout: float = PATIENCE
) -> ExecResult:
    """Run a Python script inside."""
    return await sandbox.exec(["python3", "-c", script, *words], timeout=timeout)


async def alive(sandbox: Sandbox) -> None:
    """Raise `NotKept` unless a sandbox still runs commands."""
    result = await sandbox.exec("echo alive", timeout=PATIENCE)
    expect((result.exit_code, result.stdout) == (0, b"alive\n"), result)
