"""Plays attacks, and says of each what became of it, of its sandbox, and of the machine."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Self

from gymsuite.errors import SandboxError
from gymsuite.sandbox.conformance import limits
from gymsuite.sandbox.conformance.abuse.attack import LIMITS, Attack, usable
from gymsuite.sandbox.conformance.abuse.machine import Machine
from gymsuite.sandbox.conformance.case import Case, NotKept, Result, Verdict, alive, same
from gymsuite.sandbox.conformance.suite import check, gap
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

Report = Callable[[Result], None]
_SETTLE_SECONDS = 10.0


async def strike(
    open_sandbox: OpenSandbox,
    spec: SandboxSpec,
    attacks: Sequence[Attack],
    *,
    report: Report = lambda _: None,
) -> list[Result]:
    """Play attacks in sandboxes of a spec whose image is that of the suite, with small limits.

    Those that need not be `alone` share a sandbox. After each it has to go on. At the end, the next
    sandbox has to be as new, and this machine as before; both are results of their own.
    """
    spec = spec.model_copy(update=dict(LIMITS))
    async with open_sandbox(spec) as sandbox:
        declared = limits.declared(sandbox)
    before = Machine.look()
    results = []
    async with _Arena(open_sandbox, spec) as arena:
        for attack in attacks:
            result = await _play(attack, arena, declared)
            results.append(result)
            report(result)
    for case in (_next(), _machine(before)):
        result = await check(case, open_sandbox, spec)
        results.append(result)
        report(result)
    return results


class _Arena:
    """The sandbox that attacks share, replaced when one of them has got the better of it."""

    def __init__(self, open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
        self.fresh = open_sandbox
        self.spec = spec
        self._stack = AsyncExitStack()
        self._sandbox: Sandbox | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self) -> None:
        self._sandbox = None
        await self._stack.aclose()

    @asynccontextmanager
    async def lend(self, _: SandboxSpec) -> AsyncIterator[Sandbox]:
        if self._sandbox is None:
            self._sandbox = await self._stack.enter_async_context(self.fresh(self.spec))
        yield self._sandbox
        await usable(self._sandbox)


async def _play(attack: Attack, arena: _Arena, declared: Mapping[str, object]) -> Result:
    missing = gap(attack.needs, declared)
    if missing:
        return Result(attack.kind, attack.name, Verdict.NOT_ENFORCED, missing)
    opens = arena.fresh if attack.alone else arena.lend
    case = Case(attack.kind, attack.name, attack.body)
    result = await check(case, opens, arena.spec)
    if result.verdict == Verdict.FAILED:
        with suppress(SandboxError):
            await arena.leave()
    return result


def _next() -> Case:
    async def body(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
        async with open_sandbox(spec) as sandbox:
            await alive(sandbox)
            same(await sandbox.read("plain.txt"), b"plain\n")
            changes = await sandbox.changes("/workspace")
            same((changes.changed, changes.omitted), ((), ()))

    return Case("after all", "the next sandbox is as new", body)


def _machine(before: Machine) -> Case:
    async def body(_open: OpenSandbox, _spec: SandboxSpec) -> None:
        # Containers and namespaces that ended a moment ago may still be taken down.
        deadline = time.monotonic() + _SETTLE_SECONDS
        while (damage := Machine.look().damage(before)) and time.monotonic() < deadline:  # noqa: ASYNC110 - it is another's doing
            await asyncio.sleep(0.1)
        if damage:
            raise NotKept("; ".join(damage))

    return Case("after all", "this machine is as it was", body)
