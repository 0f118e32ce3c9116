"""Reads numbers, quantities and dates from short answers; what is not wholly one is None."""

import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from gymsuite.verify.qa_fold import fold
from gymsuite.verify.qa_units import CURRENCY_SIGNS, SCALES, spelled_number, unit_name

_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s?(?P<currency>[$€£¥]?)\s?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ '_]\d{3})+|\d+)(?P<fraction>\.\d+)?"
    r"(?P<exponent>e[+-]?\d{1,3})?(?P<rest>.*)",
    re.DOTALL,
)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = r"(?P<month>" + "|".join(f"{name}|{name[:3]}|{name[:4]}" for name in _MONTHS) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{1,4})(?:\s?(?P<era>bce?|ce|ad|b\.c\.|a\.d\.))?"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})",
        r"(?P<year>\d{4})-(?P<month>\d{2})",
        rf"(?:the )?{_DAY}(?: of)? {_MONTH},? {_YEAR}",
        rf"{_MONTH} (?:the )?{_DAY},? {_YEAR}",
        rf"{_MONTH},? {_YEAR}",
        _YEAR,
    )
)
_BEFORE_A_DATE = re.compile(r"^(?:(?:in|on) )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?")
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Quantity(NamedTuple):
    """A number and what it counts; `unit` is a canonical name, or "" where none was given."""

    value: Decimal
    unit: str


class Date(NamedTuple):
    """A day, a month or a year: what was not said is None. Years before our era are negative."""

    year: int
    month: int | None = None
    day: int | None = None


def read_quantity(text: str) -> Quantity | None:
    """Read "1,234", "3.5 million", "$5", "42 km", "50%", "forty-two"; None for anything else."""
    text = fold(text)
    text = text[1:-1] if text[:1] + text[-1:] == "()" else text
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _spelled(text)
    digits = re.sub(r"[, '_]", "", match["digits"])
    try:
        value = Decimal(
            f"{match['sign']}{digits}{match['fraction'] or ''}{match['exponent'] or ''}"
        )
    except InvalidOperation:
        return None
    if not re.match(r"$|[\s%a-z°/-]", match["rest"]):
        return None
    return _with_unit(value, match["rest"].strip(" -"), CURRENCY_SIGNS.get(match["currency"], ""))


def _with_unit(value: Decimal, rest: str, currency: str) -> Quantity | None:
    word, _, after = rest.partition(" ")
    if word in SCALES:
        value, rest = value * SCALES[word], after.strip()
    if not rest:
        return Quantity(value, currency)
    name = unit_name(rest)
    if name is None or (currency and currency != name):
        return None
    return Quantity(value, name)


def _spelled(text: str) -> Quantity | None:
    words = text.replace("-", " ").split()
    for end in range(len(words), 0, -1):
        value = spelled_number(words[:end])
        if value is not None:
            return _with_unit(Decimal(value), " ".join(words[end:]), "")
    return None


def read_date(text: str) -> Date | None:
    """Read ISO dates and English ones; "3/4/2001" is nobody's date unless 3 and 4 are equal."""
    text = _BEFORE_A_DATE.sub("", fold(text))
    if slashed := _SLASHED.fullmatch(text):
        return _unambiguous(*map(int, slashed.groups()))
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            return _checked(
                int(parts["year"]) * (-1 if (parts.get("era") or "").startswith("b") else 1),
                _month(parts.get("month")),
                int(parts["day"]) if parts.get("day") else None,
            )
    return None


def _unambiguous(first: int, second: int, year: int) -> Date | None:
    readings = {_checked(year, first, second), _checked(year, second, first)} - {None}
    return readings.pop() if len(readings) == 1 else None


def _month(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isdigit():
        return int(text)
    return next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(text))


def _checked(year: int, month: int | None, day: int | None) -> Date | None:
    if month is not None and not 1 <= month <= len(_DAYS):
        return None
    if day is not None and (month is None or not 1 <= day <= _DAYS[month - 1]):
        return None
    return Date(year, month, day)
