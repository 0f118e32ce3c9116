"""What happened to each claim: who recorded, certified, withdrew, copied and made up what."""

import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gymsuite.search.invented import Words


class Subject(NamedTuple):
    """Something with a disputed figure."""

    name: str
    attribute: str
    unit: str


class Entry(NamedTuple):
    """An entry of the register. `certified` and `withdrawn` are numbers of gazette notices.

    `beside` are entries of others that the same notice certifies.
    """

    number: int
    year: int
    value: int
    beside: tuple[int, int]
    certified: int = 0
    withdrawn: int = 0


class Report(NamedTuple):
    """What a newspaper or a forum said; `after` is the paper that it copied from."""

    outlet: str
    year: int
    value: int
    after: str = ""


class Case(NamedTuple):
    """A subject's whole file. `annulled` is the notice that annuls its last withdrawal."""

    key: str
    plot: str
    subject: Subject
    entries: tuple[Entry, ...]
    annulled: int
    reports: tuple[Report, ...]
    bait: int


PLOTS = (
    *("revised", "uncertified", "withdrawn", "restored") * 5, *("copied",) * 4, "void",
)  # fmt: skip
_NAMESAKE_CHANCE = 0.5
_KINDS: Mapping[str, tuple[str, str, tuple[int, int]]] = {
    "Dam": ("crest length", "metres", (210, 4900)),
    "Lighthouse": ("focal height", "centimetres", (1100, 9900)),
    "Mine": ("shaft depth", "metres", (140, 2900)),
    "Reservoir": ("capacity", "megalitres", (300, 9800)),
    "Ferry": ("displacement", "tonnes", (350, 9500)),
    "Viaduct": ("deck width", "millimetres", (3100, 9900)),
}
_PAPERS = ("Courier", "Herald", "Post", "Mirror", "Tribune", "Observer")


class Numbers:
    """Draws five-digit numbers, each one once."""

    def __init__(self, rng: random.Random) -> None:
        self._left = list(range(10_000, 100_000))
        rng.shuffle(self._left)

    def draw(self) -> int:
        """A number that was not drawn before."""
        return self._left.pop()


def cases(
    split: str, count: int, words: Words, numbers: Numbers, rng: random.Random
) -> Iterator[Case]:
    """Invent files, the plots in turn."""
    papers = [f"the {words.draw(2)} {rng.choice(_PAPERS)}" for _ in range(24)]
    name, kind = "", ""
    for n in range(count):
        namesake = bool(name) and n % 2 == 1 and rng.random() < _NAMESAKE_CHANCE
        name = name if namesake else words.draw(3)
        kind = rng.choice([other for other in _KINDS if other != kind])
        attribute, unit, span = _KINDS[kind]
        subject = Subject(f"the {name} {kind}", attribute, unit)
        values = rng.sample(range(*span), 5)
        yield _case(_Draft(f"{split}/{n}", PLOTS[n % len(PLOTS)], subject, values), numbers, rng,
                    papers)  # fmt: skip


class _Draft(NamedTuple):
    key: str
    plot: str
    subject: Subject
    values: list[int]


def _case(draft: _Draft, numbers: Numbers, rng: random.Random, papers: list[str]) -> Case:
    key, plot, subject, values = draft
    years = sorted(rng.sample(range(1931, 2015), 3))
    first, second = (
        Entry(
            numbers.draw(), year, value, (numbers.draw(), numbers.draw()), certified=numbers.draw()
        )
        for year, value in zip(years[:2], values[:2], strict=True)
    )
    annulled = 0
    match plot:
        case "uncertified":
            second = second._replace(certified=0)
        case "withdrawn":
            second = second._replace(withdrawn=numbers.draw())
        case "restored":
            second = second._replace(withdrawn=numbers.draw())
            annulled = numbers.draw()
        case "void":
            first = first._replace(withdrawn=numbers.draw())
        case _:
            pass
    entries = (first,) if plot in {"void", "copied"} else (first, second)
    reports = _reports(plot, values, years[2], rng, papers)
    return Case(key, plot, subject, entries, annulled, reports, values[4])


def _reports(
    plot: str, values: list[int], year: int, rng: random.Random, papers: list[str]
) -> tuple[Report, ...]:
    """A paper errs, another copies the error, a third is right, a forum knows better."""
    one, two, three = rng.sample(papers, 3)
    truth = values[0] if plot == "copied" else values[3]
    return (
        Report(one, year, values[2]),
        Report(two, year + 1, values[2], after=one),
        Report(three, year + 2, truth),
        Report("", year + 3, values[2], after=two),
    )


def valid(case: Case) -> Entry | None:
    """The latest entry that is certified and not withdrawn, or None."""
    standing = [
        entry
        for entry in case.entries
        if entry.certified and (not entry.withdrawn or case.annulled)
    ]
    return max(standing, key=lambda entry: entry.year, default=None)
