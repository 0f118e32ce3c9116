"""Whether one more sandbox fits on a machine: by what is declared, and by what is really left.

What a sandbox declares is a limit, and most use far less of it, so only a share is counted: of its
memory an eighth, but 64 MiB at least, and of its processors a thirty-second, since agents mostly
wait for their models.
"""

import time
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.capacity import Machine
from gymsuite.types import SandboxSpec

MEMORY_SHARE = 1 / 8
MEMORY_FLOOR_BYTES = 64 << 20
PROCESSOR_SHARE = 1 / 32

_RESERVE_SHARE = 1 / 16
_LEAST_RESERVE_BYTES = 512 << 20
_MOST_RESERVE_BYTES = 8 << 30
_SETTLE_SECONDS = 2.0
_ROUNDING = 1e-9


class Share(NamedTuple):
    """What a sandbox counts, or all of them may."""

    memory_bytes: float
    processors: float


class Allowance:
    """What is counted, and may be. `reserve_bytes` of the machine's memory stay free."""

    def __init__(
        self, machine: Machine, *, memory_bytes: float | None, processors: float | None
    ) -> None:
        self._machine = machine
        total = machine.memory_bytes
        reserve = max(_LEAST_RESERVE_BYTES, total * _RESERVE_SHARE)
        self.reserve_bytes = min(total / 2, reserve, _MOST_RESERVE_BYTES)
        self._most = Share(
            total - self.reserve_bytes if memory_bytes is None else memory_bytes,
            machine.processors if processors is None else processors,
        )
        self._taken = Share(0, 0)
        self._running = 0
        self._young: dict[object, tuple[float, float]] = {}
        self._young_bytes = 0.0

    def share(self, spec: SandboxSpec) -> Share:
        """What a sandbox would count. Raises `SandboxError` where it could never be let in."""
        declared: float = spec.memory_bytes
        if "memory_bytes" not in spec.model_fields_set:
            # What nobody chose is a limit for large machines, and no need of the task's.
            declared = min(declared, self._machine.memory_bytes)
        memory = min(declared, max(MEMORY_FLOOR_BYTES, declared * MEMORY_SHARE))
        processors = min(spec.cpus, self._machine.processors) * PROCESSOR_SHARE
        if declared > self._machine.memory_bytes:
            raise SandboxError(
                f"a sandbox of image {spec.image!r} may use {_mib(declared)} of memory, and this "
                f"machine has {_mib(self._machine.memory_bytes)}; give it a smaller memory_bytes, "
                "or take a larger machine",
                retryable=False,
            )
        if memory > self._most.memory_bytes or processors > self._most.processors + _ROUNDING:
            raise SandboxError(
                f"a sandbox of image {spec.image!r} counts {_mib(memory)} of memory and "
                f"{processors:.3f} processors, and admission was given {_mib(self._most[0])} and "
                f"{self._most.processors:.3f} for all; give it more",
                retryable=False,
            )
        return Share(memory, processors)

    def fits(self, share: Share) -> bool:
        """Whether it is within what may be counted; the first always is."""
        return self._running == 0 or (
            self._taken.memory_bytes + share.memory_bytes <= self._most.memory_bytes + _ROUNDING
            and self._taken.processors + share.processors <= self._most.processors + _ROUNDING
        )

    def has_memory(self, share: Share) -> bool:
        """Whether the machine really has room; where nothing of ours runs, waiting frees none.

        What was let in a moment ago does not use its memory yet, and is counted instead.
        """
        if self._running == 0:
            return True
        free = self._machine.available_bytes() - self.reserve_bytes - self._settling()
        return free >= share.memory_bytes

    def take(self, key: object, share: Share) -> None:
        """Count a sandbox, known by `key`."""
        self._running += 1
        self._taken = Share(*(a + b for a, b in zip(self._taken, share, strict=True)))
        self._young[key] = (time.monotonic(), share.memory_bytes)
        self._young_bytes += share.memory_bytes

    def give_back(self, key: object, share: Share) -> None:
        """Count it no more."""
        self._running -= 1
        self._taken = Share(*(a - b for a, b in zip(self._taken, share, strict=True)))
        self._grow_up(key)

    def _settling(self) -> float:
        grown = time.monotonic() - _SETTLE_SECONDS
        while self._young and self._young[oldest := next(iter(self._young))][0] <= grown:
            self._grow_up(oldest)
        return self._young_bytes

    def _grow_up(self, key: object) -> None:
        _, memory = self._young.pop(key, (0.0, 0.0))
        self._young_bytes -= memory


def _mib(count: float) -> str:
    return f"{count / (1 << 20):,.0f} MiB"
