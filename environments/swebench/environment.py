"""Real issues of real repositories, as rows of the SWE-bench family: a user's own data set."""

from gymsuite.swe.environment import configure

__all__ = ["configure"]
