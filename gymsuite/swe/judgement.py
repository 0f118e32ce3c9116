"""What came of a patch, and what that rests on."""

from dataclasses import dataclass, field
from enum import StrEnum

from gymsuite.swe.grading import Verdict
from gymsuite.swe.parsers.results import Parsed


class Ending(StrEnum):
    """What came of a patch. Only the first is a success, and none is the world's fault."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    EMPTY = "empty"
    NOT_APPLIED = "not applied"
    TIMED_OUT = "timed out"
    NOT_READ = "not read"
    """SWE-bench's harness stumbles over the log, and so, where that is asked for, do we."""


class Evidence(StrEnum):
    """What a verdict rests on, the best first."""

    SEALED = "sealed"
    """Values that tests saw, compared on this side: what is right is nowhere in the sandbox."""

    STRUCTURED = "structured"
    """What pytest said of each test past its output; a pass also stood beside tests that failed
    because they had to, where the row's tests can be run so."""

    LOG = "log"
    """What a log says. Code under test can write there, too."""

    NONE = "none"
    """No test ran."""


@dataclass(frozen=True)
class Judgement:
    """What came of a patch, and what it rests on.

    `how` is the attempt that applied it, `undone` the paths that no patch may touch, `forged` how
    the run was tampered with. `differences` says where SWE-bench's own grading of the same log
    comes out otherwise.
    """

    ending: Ending
    verdict: Verdict | None = None
    evidence: Evidence = Evidence.NONE
    reason: str = ""
    how: str = ""
    undone: tuple[str, ...] = ()
    forged: str = ""
    differences: tuple[str, ...] = ()
    patch_log: str = field(default="", repr=False)
    log: bytes = field(default=b"", repr=False)
    results: Parsed = field(default=Parsed(), repr=False)
    test_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def resolved(self) -> bool:
        """Whether the patch solves the problem."""
        return self.ending is Ending.RESOLVED
