"""The default scorer of short answers: one candidate, compared as what it is.

Numbers compare as numbers, quantities by their unit, dates by what they say, sets without order,
and text by its canonical form (`gymsuite.verify.qa_fold`). Hedging never pays: "Paris or London"
is neither.
"""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from gymsuite.types import Model
from gymsuite.verify.qa_fold import bare, canonical
from gymsuite.verify.qa_units import UNITS
from gymsuite.verify.qa_values import Quantity, read_date, read_quantity

MOST_WORDS = 12
_MOST_CHARACTERS = 4000
_BULLET = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,2}[.)])\s+")
_SEPARATORS = (r"[;|]", r"[;|,]", r"[;|,]|,?\s+(?:and|&)\s+")


class TextGold(Model):
    """A name or phrase, with all its accepted spellings."""

    kind: Literal["text"] = "text"
    answers: tuple[str, ...] = Field(min_length=1)


class NumberGold(Model):
    """A number, exact unless a tolerance is given.

    With a unit, a bare number is taken to be in that unit, and other units of its kind convert.
    """

    kind: Literal["number"] = "number"
    value: Decimal
    unit: str = ""
    relative_tolerance: Decimal = Field(default=Decimal(0), ge=0)


class DateGold(Model):
    """A day, month or year, as ISO 8601 ("2001-03-05", "2001-03", "2001"), with that precision."""

    kind: Literal["date"] = "date"
    value: str


class SetGold(Model):
    """Several things in any order, each with its accepted spellings."""

    kind: Literal["set"] = "set"
    items: tuple[tuple[str, ...], ...]


Gold = Annotated[TextGold | NumberGold | DateGold | SetGold, Field(discriminator="kind")]

INSUFFICIENT = TextGold(
    answers=(
        "insufficient evidence",
        "insufficient information",
        "not enough information",
        "unanswerable",
        "cannot be determined",
    )
)
"""What to answer where the documents do not say."""


def typed(prediction: str, gold: Gold) -> bool:
    """Whether the one candidate in `prediction` is the gold answer."""
    if len(prediction) > _MOST_CHARACTERS:
        return False
    if isinstance(gold, SetGold):
        return _is_set(bare(_in_one_line(prediction)), gold.items)
    answer = bare(prediction)
    if len(answer.split()) > _cap(gold):
        return False
    if isinstance(gold, TextGold):
        return _is_one_of(answer, gold.answers)
    if isinstance(gold, NumberGold):
        return _is_number(answer, gold)
    said = read_date(answer)
    return said is not None and said == read_date(gold.value)


def _cap(gold: Gold) -> int:
    longest = max((len(a.split()) for a in gold.answers), default=0) if gold.kind == "text" else 0
    return max(MOST_WORDS, longest)


def _is_one_of(answer: str, accepted: Sequence[str]) -> bool:
    said = canonical(answer)
    return bool(said) and any(said == canonical(other) for other in accepted)


def _is_number(answer: str, gold: NumberGold) -> bool:
    said = read_quantity(answer)
    if said is None:
        return False
    wanted = read_quantity(f"{gold.value:f} {gold.unit}".strip())
    if wanted is None:
        return False
    value = _in_unit(said, wanted.unit)
    if value is None:
        return False
    return abs(value - wanted.value) <= gold.relative_tolerance * abs(wanted.value)


def _in_unit(said: Quantity, unit: str) -> Decimal | None:
    if said.unit in {"", unit}:
        return said.value
    theirs, ours = UNITS.get(said.unit), UNITS.get(unit)
    if theirs is None or ours is None or theirs.dimension != ours.dimension:
        return None
    return said.value * theirs.factor / ours.factor


def _is_set(answer: str, items: Sequence[Sequence[str]]) -> bool:
    longest = max((len(a.split()) for item in items for a in item), default=0)
    for members in _readings(answer):
        if any(len(member.split()) > max(MOST_WORDS, longest) for member in members):
            continue
        found = {_index_of(member, items) for member in members}
        if found == set(range(len(items))):
            return True
    return False


def _in_one_line(answer: str) -> str:
    lines = [line for line in answer.splitlines() if line.strip()]
    return "; ".join(_BULLET.sub("", line) for line in lines) if len(lines) > 1 else answer


def _index_of(member: str, items: Sequence[Sequence[str]]) -> int | None:
    return next((i for i, item in enumerate(items) if _is_one_of(member, item)), None)


def _readings(answer: str) -> list[list[str]]:
    """The ways to cut an answer into members; a name may itself hold a comma or an "and"."""
    try:
        listed = json.loads(answer)
    except ValueError:
        listed = None
    if isinstance(listed, list) and all(isinstance(member, str) for member in listed):
        return [listed]
    inner = answer[1:-1] if answer[:1] + answer[-1:] in {"[]", "{}", "()"} else answer
    cuts = [[inner], *(re.split(separator, inner) for separator in _SEPARATORS)]
    return [[member.strip() for member in cut if member.strip()] for cut in cuts]
