"""The corpus and the tasks: four worlds with no name in common, one for each split."""

import functools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gymsuite import Task
from gymsuite.search import Document
from gymsuite.search.invented import Words
from gymsuite.verify.qa_typed import INSUFFICIENT

from .pages import pages
from .questions import ASKED, Asker, Question
from .relations import RELATIONS
from .trail import said_by
from .world import Atlas, Size, World, make_world

VERSION = "hoptrail-v1"
_LARGE = Size(people=900, towns=160, orgs=200, works=700, events=150, regions=24)
_SMALL = Size(people=450, towns=90, orgs=110, works=350, events=80, regions=16)
WORLDS: Mapping[str, Size] = {"train": _LARGE, "validation": _SMALL, "test": _SMALL, "ood": _SMALL}
_NAME = re.compile(r"[A-Z][a-z]{3,}")
_INSTRUCTIONS = (
    "\n\nSearch the encyclopaedia; nobody knows its people and places by heart. Then submit one "
    "short answer, and cite every page that it rests on: the pages must have been opened. If the "
    'encyclopaedia does not hold what is needed, answer "insufficient evidence" and cite the pages '
    "that lead up to what is missing."
)


class Share(NamedTuple):
    """How many questions of a kind and length there are among 200."""

    kind: str
    hops: int
    per_unit: int


SHARES = (
    Share("bridge", 2, 26), Share("bridge", 3, 28), Share("bridge", 4, 26), Share("bridge", 5, 16),
    Share("comparison", 3, 24),
    Share("count", 2, 16),
    Share("superlative", 2, 18),
    Share("intersection", 3, 16),
    Share("temporal", 3, 11), Share("temporal", 4, 11),
)  # fmt: skip
SHARES_OOD = (
    Share("bridge", 3, 26), Share("bridge", 4, 38), Share("bridge", 5, 32),
    Share("comparison", 4, 24),
    Share("count", 3, 16),
    Share("superlative", 3, 18),
    Share("intersection", 4, 16),
    Share("temporal", 4, 11), Share("temporal", 5, 11),
)  # fmt: skip
_TWINS = 8
_UNIT = 200
_TRIES = 4000
_MOST_PAGES = 12
"""Less than two thirds of the citations that one may give."""
SPLITS: Mapping[str, int] = {"train": 1000, "validation": 200, "test": 200, "ood": 200}


@functools.cache
def worlds() -> Mapping[str, World]:
    """All worlds, drawn from one bank of names in a fixed order."""
    words = Words(random.Random(f"{VERSION}/names"), _vocabulary())
    return {
        split: make_world(split, size, words, random.Random(f"{VERSION}/{split}/world"))
        for split, size in WORLDS.items()
    }


def _vocabulary() -> set[str]:
    """The words in which questions are asked."""
    phrases = " ".join(
        " ".join((*relation.asked, relation.asked_ood, *relation.stated))
        for relation in RELATIONS.values()
    )
    return set(re.findall(r"[a-z]+", phrases.casefold()))


def documents() -> Iterator[Document]:
    """The encyclopaedia."""
    for split, world in worlds().items():
        yield from pages(world, random.Random(f"{VERSION}/{split}/pages"))


@dataclass(frozen=True)
class Concordance:
    """Which pages name whom, for one world."""

    texts: Mapping[str, str]
    pages: Mapping[str, frozenset[str]]

    @staticmethod
    def of(world: World) -> "Concordance":
        """Read all pages of a world."""
        rng = random.Random(f"{VERSION}/{world.split}/pages")
        texts = {page.id: _words(f"{page.title} {page.text}") for page in pages(world, rng)}
        found: dict[str, set[str]] = {}
        for page, text in texts.items():
            for word in _NAME.findall(text):
                found.setdefault(word, set()).add(page)
        return Concordance(texts, {word: frozenset(pages) for word, pages in found.items()})

    def gives_away(self, question: Question) -> bool:
        """Whether a page that shares a name with the question holds its answer."""
        names = {word for anchor in question.anchors for word in _NAME.findall(anchor)}
        near = frozenset().union(*(self.pages.get(word, frozenset()) for word in names))
        answers = [_words(said) for said in said_by(question.gold)]
        return any(answer in self.texts[page] for page in near for answer in answers)


def _words(text: str) -> str:
    """A text's words with a space on either side of each."""
    return f" {' '.join(re.findall(r'[a-zA-Z0-9]+', text))} "


def make_tasks() -> tuple[Task, ...]:
    """All tasks of all splits; the same everywhere."""
    return tuple(task for split, count in SPLITS.items() for task in _split(split, count))


def _split(split: str, count: int) -> Iterator[Task]:
    atlas = Atlas.of(worlds()[split])
    book = Concordance.of(atlas.world)
    rng = random.Random(f"{VERSION}/{split}/tasks")
    asked: set[str] = set()
    questions: list[Question] = []
    for share in SHARES_OOD if split == "ood" else SHARES:
        for _ in range(share.per_unit * count // _UNIT):
            asker = functools.partial(Asker, atlas, rng)
            question = _draw(asker, share, lambda q: q.text in asked or book.gives_away(q))
            asked.add(question.text)
            questions.append(question)
    twins = [q for q in questions if q.kind == "bridge" and _can_be_cut(q)]
    chosen = {q.text for q in rng.sample(twins, _TWINS * count // _UNIT)}
    order = list(range(len(questions)))
    rng.shuffle(order)
    for place, number in enumerate(order):
        question = questions[number]
        name = f"{split}-{place:04}"
        pair = name if question.text in chosen else ""
        yield _task(name, split, question, pair)
        if pair:
            yield _twin(f"{name}-cut", split, question, pair)


def _draw(asker: Callable[[], Asker], share: Share, unfit: Callable[[Question], bool]) -> Question:
    for _ in range(_TRIES):
        question = ASKED[share.kind](asker(), share.hops)
        if question and len(question.trail.pages) <= _MOST_PAGES and not unfit(question):
            return question
    raise AssertionError(f"no fit {share.kind} question of {share.hops} hops in {_TRIES} tries")


def _can_be_cut(question: Question) -> bool:
    """Whether the last page is all that is missing, and no older edition says something else."""
    pages = question.trail.pages
    return 0 < question.cut < len(pages) and "/register" not in pages[-1]


def _task(name: str, split: str, question: Question, pair: str) -> Task:
    return Task(
        id=name,
        prompt=question.text + _INSTRUCTIONS,
        split=split,
        level=min(5, question.hops),
        hidden={
            "answer": question.gold.model_dump(mode="json"),
            "evidence": [[page] for page in question.trail.pages],
            "trail": question.trail.steps,
            "withheld": [],
        },
        metadata=_metadata(question, pair, answerable=True),
    )


def _twin(name: str, split: str, question: Question, pair: str) -> Task:
    """The same question with its last page withheld: nobody can know the answer."""
    steps: Sequence[tuple[str, str]] = question.trail.steps
    return Task(
        id=name,
        prompt=question.text + _INSTRUCTIONS,
        split=split,
        level=min(5, question.hops),
        hidden={
            "answer": INSUFFICIENT.model_dump(mode="json"),
            "evidence": [[page] for _, page in steps[: question.cut]],
            "trail": steps[: question.cut],
            "withheld": [steps[-1][1]],
        },
        metadata=_metadata(question, pair, answerable=False),
    )


def _metadata(question: Question, pair: str, *, answerable: bool) -> Mapping[str, str | int]:
    found: dict[str, str | int] = {"kind": question.kind, "hops": question.hops}
    if pair:
        found |= {"pair": pair, "answerable": int(answerable)}
    return found
