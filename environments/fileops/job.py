"""One thing to do in a folder: what is asked, what it starts from, what is right, and how."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

from .tree import Tree, below


class Site(NamedTuple):
    """Where a job is done. `draws` are for its rules: its data have draws of their own.

    A hard job has small print; `protected` is a folder below its own that does not count.
    """

    split: str
    folder: str
    protected: str
    hard: bool
    draws: Draws

    def pick(self, ways: Sequence[str]) -> str:
        """One of the ways that this split has of saying something."""
        return self.draws.choice(share(self.split, ways))

    def own(self, path: str) -> bool:
        """Whether a path lies in the folder, and not in what is protected."""
        return below(self.folder, path) and not (self.protected and below(self.protected, path))

    @property
    def nested(self) -> tuple[str, ...]:
        """Folders to put things into: the own one, and where it is hard others below it."""
        if not self.hard:
            return (self.folder,)
        return (self.folder, f"{self.folder}/part-one", f"{self.folder}/part-one/deeper")


class Job(NamedTuple):
    """A job. `seed` puts its data into a tree, `apply` makes of it what is right.

    `script` does the same to real files from within the tree; `naive` overlooks the small print.
    """

    family: str
    folder: str
    asked: str
    notes: tuple[str, ...]
    seed: Callable[[Tree, Draws], None]
    apply: Callable[[Tree], None]
    script: str
    naive: str


Make = Callable[[Site], Job]


def python(code: str) -> str:
    """A shell command that runs some Python."""
    return f"python3 - <<'PY'\n{code.strip()}\nPY"
