"""Makes tasks.jsonl and rewrites.jsonl from the documentation; run it when the sources change.

python -m generate DOCUMENTS.jsonl      (in this folder's package; see README.md)
"""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gymsuite import Task
from gymsuite.search import Document

from .editions import Rewrite
from .mine import Fact, mine

VERSION = "docdive-v1"
PER_SPLIT = {"version": 110, "versions": 30, "default": 20, "sum": 40}
_PROOF = (
    "\n\nThe documentation that you can search is the authority, whatever you remember. Submit one "
    "short answer, and cite each page that states a part of it with a literal quote of 5 to 40 "
    "words that holds the value as the page gives it."
)


class Changed(NamedTuple):
    """A fact and its value in the perturbed edition."""

    fact: Fact
    value: str


def perturb(facts: Sequence[Fact], pages: Mapping[str, Document]) -> list[Changed]:
    """Draw a new value for every fact, one that its page does not hold yet."""
    rng = random.Random(f"{VERSION}/values")
    taken: dict[str, set[str]] = {}
    found = []
    for fact in facts:
        page = pages[fact.page].text
        used = taken.setdefault(fact.page, set())
        while True:
            value = _drawn(fact.attribute, rng)
            if value not in used and not re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.])", page):
                break
        used.add(value)
        found.append(Changed(fact, value))
    return found


def _drawn(attribute: str, rng: random.Random) -> str:
    if attribute == "version":
        return f"{rng.randint(1, 29)}.{rng.randint(0, 49)}"
    return str(rng.randint(2, 9999))


def rewrites(changed: Sequence[Changed]) -> list[Rewrite]:
    """Where the perturbed edition differs."""
    return [Rewrite(c.fact.page, c.fact.start, c.fact.end, c.value) for c in changed]


def tasks(changed: Sequence[Changed]) -> Iterator[Task]:
    """Train and test over facts of their own, and test's once more in the true edition."""
    rng = random.Random(f"{VERSION}/tasks")
    versions = [c for c in changed if c.fact.attribute == "version"]
    defaults = [c for c in changed if c.fact.attribute == "default"]
    rng.shuffle(versions)
    rng.shuffle(defaults)
    needed = PER_SPLIT["version"] + 2 * PER_SPLIT["versions"]
    half = len(defaults) // 2
    for split, some, others in (
        ("train", versions[:needed], defaults[:half]),
        ("test", versions[needed : 2 * needed], defaults[half:]),
    ):
        groups = _groups(some, others, rng)
        for number, group in enumerate(groups):
            yield _task(f"{split}-{number:04}", split, "perturbed", group)
        if split == "test":
            for number, group in enumerate(groups):
                true = [Changed(c.fact, c.fact.value) for c in group]
                yield _task(f"true-{number:04}", "true", "true", true)


def _groups(
    versions: Sequence[Changed], defaults: Sequence[Changed], rng: random.Random
) -> list[list[Changed]]:
    """One fact, or two from pages of their own, for each task."""
    groups = _pairs(versions, PER_SPLIT["versions"])
    paired = {c.fact for group in groups for c in group}
    alone = [c for c in versions if c.fact not in paired]
    groups += [[c] for c in alone[: PER_SPLIT["version"]]]
    groups += [[c] for c in defaults[: PER_SPLIT["default"]]]
    couples = [
        [one, two]
        for place, one in enumerate(defaults)
        for two in defaults[place + 1 :]
        if one.fact.page != two.fact.page
    ]
    groups += rng.sample(couples, PER_SPLIT["sum"])
    rng.shuffle(groups)
    return groups


def _pairs(facts: Sequence[Changed], count: int) -> list[list[Changed]]:
    """Partners whose pages and values differ in both editions."""
    left = list(facts)
    pairs: list[list[Changed]] = []
    while left and len(pairs) < count:
        one = left.pop()
        two = next(
            (
                other
                for other in left
                if other.fact.page != one.fact.page and other.fact.value != one.fact.value
            ),
            None,
        )
        if two is not None:
            left.remove(two)
            pairs.append([one, two])
    return pairs


def _task(name: str, split: str, edition: str, group: Sequence[Changed]) -> Task:
    values = [c.value for c in group]
    exhibits = [
        {
            "query": f"{c.fact.project} {c.fact.name} {c.fact.kind}",
            "document": c.fact.page,
            "holds": c.value,
        }
        for c in group
    ]
    return Task(
        id=name,
        prompt=_question(group) + _PROOF,
        split=split,
        level=len(group),
        hidden={"answer": _gold(group, values), "exhibits": exhibits},
        metadata={"edition": edition, "kind": _kind(group)},
    )


def _kind(group: Sequence[Changed]) -> str:
    attribute = group[0].fact.attribute
    if len(group) == 1:
        return attribute
    return "sum" if attribute == "default" else "versions"


def _question(group: Sequence[Changed]) -> str:
    named = [f"the {c.fact.kind} {c.fact.name} of {c.fact.project}" for c in group]
    match _kind(group):
        case "version":
            return f"In which version was {named[0]} added?"
        case "default":
            return f"What is the default of {named[0]}?"
        case "sum":
            return f"What do the defaults of {named[0]} and of {named[1]} add up to?"
        case _:
            return (
                f"In which versions were {named[0]} and {named[1]} added? Give both, separated by "
                "a comma."
            )


def _gold(group: Sequence[Changed], values: Sequence[str]) -> dict[str, Any]:
    match _kind(group):
        case "version":
            return {"kind": "text", "answers": [values[0]]}
        case "default":
            return {"kind": "number", "value": values[0]}
        case "sum":
            return {"kind": "number", "value": str(sum(map(int, values)))}
        case _:
            return {"kind": "set", "items": [[value] for value in values]}


def write(source: Path, folder: Path) -> None:
    """Write both files."""
    with source.open(encoding="utf-8") as lines:
        documents = [Document.model_validate_json(line) for line in lines]
    pages = {page.id: page for page in documents}
    changed = perturb(mine(pages), pages)
    with (folder / "rewrites.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(rewrite) + "\n" for rewrite in rewrites(changed))
    with (folder / "tasks.jsonl").open("w", encoding="utf-8") as out:
        for task in tasks(changed):
            row = task.model_dump(mode="json", exclude_defaults=True)
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
