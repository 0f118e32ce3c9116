"""Runs cases over a provider, and says of each what became of it."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from gymsuite.errors import GymsuiteError
from gymsuite.sandbox.conformance import (
    changes,
    commands,
    files,
    isolation,
    limits,
    loss,
    processes,
    snapshots,
    streams,
    transfer,
    users,
)
from gymsuite.sandbox.conformance.case import Case, NotKept, NotOffered, Result, Verdict
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import SandboxSpec

CASES: tuple[Case, ...] = (
    *commands.CASES,
    *streams.CASES,
    *processes.CASES,
    *users.CASES,
    *files.CASES,
    *transfer.CASES,
    *changes.CASES,
    *snapshots.CASES,
    *limits.CASES,
    *isolation.CASES,
    *loss.CASES,
)
_DEADLINE = 300.0


async def run(
    open_sandbox: OpenSandbox,
    spec: SandboxSpec,
    *,
    cases: Sequence[Case] = CASES,
    report: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Run the suite, case by case, in sandboxes of a spec whose image is `recipe.IMAGE`.

    Raises `SandboxError` where not even the first sandbox opens.
    """
    declared: Mapping[str, object] = {}
    if any(case.needs for case in cases):
        async with open_sandbox(spec) as sandbox:
            declared = limits.declared(sandbox)
    results = []
    for case in cases:
        missing = gap(case.needs, declared)
        if missing:
            result = Result(case.group, case.name, Verdict.NOT_ENFORCED, missing)
        else:
            result = await check(case, open_sandbox, spec)
        results.append(result)
        report(result)
    return results


def gap(needs: Sequence[str], declared: Mapping[str, object]) -> str:
    """Say which of the limits that are needed a description does not declare, or ""."""
    missing = [need for need in needs if not _enforced(need, declared.get(need))]
    return f"the description says that it does not limit {', '.join(missing)}" if missing else ""


def _enforced(need: str, limit: object) -> bool:
    return limit == "none" if need == "network" else limit is not None


async def check(case: Case, open_sandbox: OpenSandbox, spec: SandboxSpec) -> Result:
    """Run one case, whatever it needs."""
    started = time.monotonic()
    verdict, reason = Verdict.PASSED, ""
    try:
        async with asyncio.timeout(_DEADLINE):
            await case.body(open_sandbox, spec)
    except NotOffered as error:
        verdict, reason = Verdict.NOT_OFFERED, str(error)
    except NotKept as error:
        verdict, reason = Verdict.FAILED, str(error)
    except TimeoutError:
        verdict, reason = Verdict.FAILED, f"it took more than {_DEADLINE:g} seconds"
    except (GymsuiteError, OSError, ValueError) as error:
        verdict, reason = Verdict.FAILED, f"{type(error).__name__}: {error}"
    return Result(case.group, case.name, verdict, reason, time.monotonic() - started)
