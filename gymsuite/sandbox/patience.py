"""When a queue has stood still for too long, although nothing is at work that it could wait for.

Those who hold the sandboxes may themselves be waiting for those who queue: a trainer that steps all
its episodes together does so, and an environment whose episodes share a sandbox may. No bookkeeping
sees that, but idle processors do. Then one is let in beyond what may be counted, and more and more
quickly the longer none of the others leaves.
"""

import time

from gymsuite.sandbox.capacity import Machine

PATIENCE_SECONDS = 10.0
_LEAST_SECONDS = 0.25
_IDLE_SHARE = 0.5
_BUSY_FACTOR = 6.0


class Patience:
    """Measures for how long nobody came or left, and how idle the processors were meanwhile."""

    def __init__(self, machine: Machine, seconds: float) -> None:
        self._machine = machine
        self._most = seconds
        self._seconds = seconds
        self._since = 0.0
        self._idle = 0.0

    def renew(self) -> None:
        """Begin anew: someone has left, or has come to an empty queue."""
        self._seconds = self._most
        self._begin()

    def shorten(self) -> None:
        """Begin anew after someone was let in, with half the patience."""
        self._seconds = max(_LEAST_SECONDS, self._seconds / 2)
        self._begin()

    def is_over(self) -> bool:
        """Whether it is time. Busy processors are waited for, six times as long."""
        quiet = time.monotonic() - self._since
        if quiet >= self._most * _BUSY_FACTOR:
            return True
        return quiet >= self._seconds and self._idle_share(quiet) >= _IDLE_SHARE

    def _begin(self) -> None:
        self._since = time.monotonic()
        self._idle = self._machine.idle_seconds()

    def _idle_share(self, seconds: float) -> float:
        idle = self._machine.idle_seconds() - self._idle
        return idle / max(seconds * self._machine.processors, 1e-9)
