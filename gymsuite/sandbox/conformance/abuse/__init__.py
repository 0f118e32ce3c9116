"""What hostile agents try, and what has to come of it: one list, for tests, tools and people."""

from gymsuite.sandbox.conformance.abuse import (
    disk,
    kernel,
    memory,
    neighbours,
    output,
    processes,
    races,
)
from gymsuite.sandbox.conformance.abuse.attack import LIMITS, Attack
from gymsuite.sandbox.conformance.abuse.strike import strike

__all__ = ["ATTACKS", "LIMITS", "Attack", "strike"]

ATTACKS: tuple[Attack, ...] = (
    *processes.ATTACKS,
    *memory.ATTACKS,
    *disk.ATTACKS,
    *output.ATTACKS,
    *kernel.ATTACKS,
    *races.ATTACKS,
    *neighbours.ATTACKS,
)
