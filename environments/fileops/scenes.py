"""What a task is made of: jobs in folders of a tree, and a second tree for the same jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from gymsuite.worlds.draws import Draws, scatter
from gymsuite.worlds.splits import share

from .archives import archives
from .deduping import deduping
from .job import Job, Make, Site
from .judging import Expected
from .logs import logs
from .names import FOLDERS, PROTECTED, sentence, stem
from .renaming import renaming
from .rights import rights
from .settings import settings
from .tree import Tree, text

VERSION = "1"
LEVELS = 5
HARD_FROM = 3
"""From this level on jobs have small print, and a script is asked for."""

FAMILIES: Mapping[str, Make] = {
    "renaming": renaming,
    "deduping": deduping,
    "logs": logs,
    "settings": settings,
    "archives": archives,
    "rights": rights,
}
_PAIRS = tuple(combinations(FAMILIES, 2))
# The second job is done in the folder of the first, on what that has left.
_CHAINS = (
    ("archives", "rights"),
    ("deduping", "renaming"),
    ("settings", "rights"),
    ("deduping", "rights"),
    ("archives", "deduping"),
    ("logs", "rights"),
    ("renaming", "deduping"),
    ("renaming", "rights"),
)
_BATCHES = 20_000
"""No two of so many tasks in a row have folders of the same name, so none asks for the same."""

_PLAIN, _ONE, _TWO, _CHAINED = 1, 3, 4, 5


@dataclass(frozen=True)
class Scene:
    """The jobs of a task in their order; `protected` is a folder that must not be touched."""

    split: str
    index: int
    level: int
    jobs: tuple[Job, ...]
    protected: str

    def expected(self, copy: int) -> Expected:
        """The tree before and after: copy 0 is the agent's, others nobody sees."""
        before: Tree = {}
        for number, job in enumerate(self.jobs):
            job.seed(before, self._draws("data", copy, number))
        draws = self._draws("others", copy, 0)
        for _ in range(3):
            name = stem(draws, self.split)
            before[f"misc/{name} Copy.{draws.choice(('txt', 'conf', 'log'))}"] = text(
                sentence(draws)
            )
        after = dict(before)
        for job in self.jobs:
            job.apply(after)
        rights = next((job.folder for job in self.jobs if job.family == "rights"), "")
        return Expected(before, after, self.protected, rights)

    def _draws(self, what: str, copy: int, number: int) -> Draws:
        return Draws("fileops-v1", VERSION, self.split, self.index, what, copy, number)


def scene(split: str, index: int) -> Scene:
    """The scene of this number; the same on every machine."""
    level = 1 + index % LEVELS
    draws = Draws("fileops-v1", VERSION, split, index)
    families = _families(split, level, draws)
    folders = [
        f"{name}-{scatter(index, _BATCHES, 'fileops-v1', 'batches', split):05}"
        for name in draws.sample(share(split, FOLDERS), len(families))
    ]
    if level == _CHAINED:
        folders[1] = folders[0]
    hard = level >= HARD_FROM
    protected = f"{folders[0]}/{draws.choice(share(split, PROTECTED))}" if hard else ""
    jobs = tuple(
        FAMILIES[family](
            Site(
                split,
                folder,
                protected if protected.startswith(f"{folder}/") else "",
                hard,
                Draws("fileops-v1", VERSION, split, index, "rules", number),
            )
        )
        for number, (family, folder) in enumerate(zip(families, folders, strict=True))
    )
    return Scene(split, index, level, jobs, protected)


def _families(split: str, level: int, draws: Draws) -> Sequence[str]:
    """Which families come together; no two splits have the same compositions."""
    if level in (_PLAIN, _ONE):
        return (draws.choice(tuple(FAMILIES)),)
    if level == _CHAINED:
        chain = draws.choice(share(split, _CHAINS))
        return (*chain, draws.choice([name for name in FAMILIES if name not in chain]))
    return draws.shuffled(draws.choice(pairs(split)))


def pairs(split: str) -> Sequence[tuple[str, str]]:
    """The pairs of families that this split has."""
    return share(split, _PAIRS)
