"""Opens a provider, and proves on a small sandbox that it keeps the limits it claims."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.diagnosis.finding import Finding
from gymsuite.diagnosis.trials import SLOW, SLOW_TRIALS, SMALL, TRIALS, Trial, unenforced
from gymsuite.errors import DefinitionError, InfrastructureError, SandboxError
from gymsuite.sandbox.admission import Admission
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.records import records
from gymsuite.types import SandboxSpec

_SECONDS = 45.0
_OURS = "this is a fault of gymsuite's: please report it with what `gymsuite doctor --json` says"
_CGROUPS = (
    "run as root, or in a cgroup that is yours to divide: systemd-run --user --scope -p"
    " Delegate=yes gymsuite ...; or use docker"
)
_MEMORY_DISK = "Linux 6.6 or newer, where what a sandbox writes can lie in memory; or use docker"
_ENGINE = "see the Engine's limits above; or use local"
_FIXES = {
    "local": {
        "memory_bytes": _CGROUPS,
        "cpus": _CGROUPS,
        "pids": _CGROUPS,
        "disk_bytes": _MEMORY_DISK,
        "inodes": _MEMORY_DISK,
    },
    "docker": {"memory_bytes": _ENGINE, "cpus": _ENGINE, "pids": _ENGINE},
}


@dataclass(frozen=True)
class Examined:
    """What was found of one provider. It `works` if sandboxes open and all limits held."""

    name: str
    works: bool
    findings: tuple[Finding, ...]

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The limits that it does not keep here, or of which that could not be shown."""
        return tuple(f.name for f in self.findings[1:] if f.state != "ok")


async def examine(name: str, image_roots: Sequence[Path], cache: Path) -> Examined:
    """Open a provider and try its limits; whatever goes wrong is a finding.

    Raises `UsageError` where there is no provider of that name.
    """
    missing = _missing_image(name, cache)
    try:
        async with (
            asyncio.timeout(_SECONDS),
            open_provider(
                name, image_roots=image_roots, cache=cache, admission=Admission.unlimited()
            ) as provider,
        ):
            start = Finding(name, "sandboxes", "ok", "one starts, and the trials below ran in it")
            if missing:
                return Examined(name, False, (missing,))
            await provider.ensure(SMALL.image)
            rows = await asyncio.gather(
                try_limits(name, provider.open, SMALL, TRIALS),
                try_limits(name, provider.open, SLOW, SLOW_TRIALS),
            )
    except TimeoutError:
        text = f"the trials took longer than {_SECONDS:.0f} seconds"
        return _broken(name, text, "try again when the machine has less to do")
    except (InfrastructureError, DefinitionError, OSError) as error:
        return _broken(name, *_reason(error))
    findings = [finding for row in rows for finding in row]
    works = all(finding.state == "ok" for finding in findings)
    return Examined(name, works, (start, *findings))


async def try_limits(
    name: str, open_sandbox: OpenSandbox, spec: SandboxSpec, trials: Sequence[Trial]
) -> list[Finding]:
    """Run trials in one sandbox, but for those of limits that its provider says it has not."""
    async with open_sandbox(spec) as sandbox:
        fixes = _FIXES.get(name.partition(":")[0], {})
        found: list[Finding] = []
        for trial in trials:
            if unenforced(sandbox.description, trial):
                detail = "not enforced here, and said so in every rollout's record"
                found.append(Finding(name, trial.name, "gap", detail, fixes.get(trial.limit, "")))
                continue
            try:
                seen = await trial.run(sandbox)
            except SandboxError as error:
                found.append(
                    Finding(name, trial.name, "gap", f"the sandbox was lost: {error}", _OURS)
                )
                break
            if seen.held:
                found.append(Finding(name, trial.name, "ok", seen.text))
            else:
                found.append(Finding(name, trial.name, "gap", seen.text, _OURS))
        return found


def _missing_image(name: str, cache: Path) -> Finding | None:
    """Say that an image would have to be built first, where that takes more than a moment."""
    if name == "local":
        return None
    there = any(
        record.name == SMALL.image and record.base == "debian" for _, record in records(cache)
    )
    if there:
        return None
    detail = f"it answers, but no limit was tried: image {SMALL.image!r} is not built for it"
    fix = f"gymsuite sandbox build {SMALL.image} --base debian (once, about a minute; as root)"
    return Finding(name, "sandboxes", "unknown", detail, fix)


def _broken(name: str, text: str, fix: str) -> Examined:
    return Examined(name, False, (Finding(name, "sandboxes", "gap", text, fix),))


def _reason(error: Exception) -> tuple[str, str]:
    """Divide what a provider says into what is wrong and the way out."""
    text = str(error) or type(error).__name__
    for mark in (". The local provider needs ", "; "):
        before, found, after = text.partition(mark)
        if found:
            return before, after
    return text, "mend the gaps above, or name another cache by --cache or GYMSUITE_CACHE"
