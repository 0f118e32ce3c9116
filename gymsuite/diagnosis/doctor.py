"""Everything that can be found out in a few seconds about what this machine does for sandboxes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.diagnosis.engine import engine
from gymsuite.diagnosis.finding import Finding
from gymsuite.diagnosis.machine import machine
from gymsuite.diagnosis.programs import disk, programs
from gymsuite.diagnosis.provider import Examined, examine

_ROOT = Path("/")


@dataclass(frozen=True)
class Diagnosis:
    """What was found. `provider` is the one that counts: what was asked for, or what is taken."""

    provider: str
    findings: tuple[Finding, ...]
    providers: tuple[Examined, ...]

    @property
    def healthy(self) -> bool:
        """Whether that provider works, and keeps every limit."""
        return any(one.works for one in self.providers if one.name == self.provider)


async def diagnose(
    provider: str | None, image_roots: Sequence[Path], cache: Path, root: Path = _ROOT
) -> Diagnosis:
    """Look at everything; None tries both providers. Raises `UsageError` for no provider's name."""
    names = (provider,) if provider else ("local", "docker")
    facts = [*machine(root), disk(cache), *programs()]
    if any(name.startswith("docker") for name in names):
        facts += await engine()
    examined = await asyncio.gather(*(examine(name, image_roots, cache) for name in names))
    opened = [one.name for one in examined if one.findings[0].state != "gap"]
    counts = provider or next(iter(opened), "")
    return Diagnosis(counts, tuple(facts), tuple(examined))
