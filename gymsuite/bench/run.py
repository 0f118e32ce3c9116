"""One run of the benchmark: the provider, the image, the levels, and a report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gymsuite.bench.play import Length, Told, play_episode, play_levels, variant
from gymsuite.bench.report import BenchReport, Episode
from gymsuite.bench.workload import VERSION, Runner
from gymsuite.runs.machine import describe_machine
from gymsuite.sandbox.admission import Admission
from gymsuite.sandbox.capacity import Machine
from gymsuite.sandbox.provider import open_provider
from gymsuite.types import SandboxSpec


class Request(NamedTuple):
    """What to measure. `provider` and `tests` are what works here where they are None."""

    provider: str | None
    image: str
    tests: Runner | None
    levels: Sequence[int]
    length: Length
    seed: int
    image_roots: Sequence[Path]
    cache: Path


Keep = Callable[[BenchReport], None]
"""Told of what there is to report whenever a level has ended."""


async def bench(
    request: Request, note: Callable[[str], None], told: Told, keep: Keep = lambda _: None
) -> BenchReport:
    """Measure. One episode goes before, which is not counted: it finds what is cold, and broken.

    Everyone is let in at once, since how many are is what is measured.
    """
    # Named, since an imported image may start at its root, which a container cannot write to.
    spec = SandboxSpec(image=request.image, workdir="/workspace")
    async with open_provider(
        request.provider,
        image_roots=request.image_roots,
        cache=request.cache,
        report=note,
        admission=Admission.unlimited(),
    ) as provider:
        image = await provider.ensure(request.image)
        does, description = await variant(provider.open, spec, request.tests)

        async def play(seed: int) -> Episode:
            return await play_episode(provider.open, spec, does, seed)

        await play(request.seed)
        report = BenchReport(
            workload=VERSION,
            git=does.git,
            tests=does.tests,
            seed=request.seed,
            provider=provider.name,
            image=f"{image.name}:{image.digest[:16]}",
            sandbox=description,
            machine={**describe_machine(), "processor": _processor()},
            processors=Machine.this().processors,
            levels=(),
        )
        async for level in play_levels(play, request.levels, request.length, request.seed, told):
            report = report.model_copy(update={"levels": (*report.levels, level)})
            keep(report)
    return report


def _processor() -> str:
    """What the processor calls itself, where the kernel says so."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "")
