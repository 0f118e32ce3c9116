"""A sandbox that is lost says so, to whoever waits and to whoever comes later."""

import asyncio
from collections.abc import Awaitable

from gymsuite.errors import SandboxDead
from gymsuite.sandbox.conformance.case import PATIENCE, Case, NotKept, alive, expect, over
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

GROUP = "loss"


async def dead(verb: Awaitable[object], about: str = "") -> None:
    """Raise `NotKept` unless a verb raises `SandboxDead`, soon, with some words as its reason."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await verb
    except SandboxDead as error:
        expect(about in error.reason, error.reason)
        return
    except TimeoutError:
        raise NotKept("a lost sandbox hangs") from None
    raise NotKept(f"a lost sandbox answers {str(found)[:200]!r}")


async def every_verb_is_dead(sandbox: Sandbox, about: str = "") -> None:
    """Raise `NotKept` unless every verb of a lost sandbox says that it is lost."""
    for verb in (
        sandbox.exec("true", timeout=PATIENCE),
        sandbox.spawn("true"),
        sandbox.read("plain.txt"),
        sandbox.write("new.txt", b""),
        sandbox.changes("/workspace"),
        sandbox.stats(),
    ):
        await dead(verb, about)


async def a_sandbox_past_its_lifetime_is_an_error_for_waiting_and_for_later_calls(
    open_sandbox: OpenSandbox, spec: SandboxSpec
) -> None:
    async with open_sandbox(spec.model_copy(update={"lifetime_seconds": 1.0})) as sandbox:
        await dead(sandbox.exec("sleep 1000", timeout=1000), "lifetime")
        await every_verb_is_dead(sandbox, "lifetime")
    async with open_sandbox(spec) as sandbox:
        await alive(sandbox)


async def a_sandbox_that_was_closed_is_dead(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    async with open_sandbox(spec) as sandbox:
        waiting = asyncio.create_task(sandbox.exec("sleep 1000", timeout=1000))
        await alive(sandbox)
    await dead(waiting)
    await dead(sandbox.exec("true", timeout=PATIENCE))
    await dead(sandbox.read("plain.txt"))


CASES: tuple[Case, ...] = (
    over(GROUP, a_sandbox_past_its_lifetime_is_an_error_for_waiting_and_for_later_calls),
    over(GROUP, a_sandbox_that_was_closed_is_dead),
)
