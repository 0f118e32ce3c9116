"""One thing that was looked at, how it stands, and what would mend it."""

from typing import Literal, NamedTuple

State = Literal["ok", "gap", "note", "unknown"]
"""A `gap` has a fix. A `note` is neither good nor bad; `unknown` could not be looked at."""


class Finding(NamedTuple):
    """`area` groups findings: "machine", "programs", "engine", or a provider's name."""

    area: str
    name: str
    state: State
    detail: str
    fix: str = ""
