"""Names of units and numbers: what converts into what, and how numbers are spelled in English."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit as a multiple of its dimension's base."""

    dimension: str
    factor: Decimal


_TABLE = """
length 0.001 mm millimetre millimeter
length 0.01 cm centimetre centimeter
length 1 m metre meter
length 1000 km kilometre kilometer
length 0.0254 in inch inches
length 0.3048 ft foot feet
length 0.9144 yd yard
length 1609.344 mi mile
mass 0.001 mg milligram
mass 1 g gram
mass 1000 kg kilogram
mass 1000000 t tonne
mass 453.59237 lb lbs pound-mass
mass 28.349523125 oz ounce
time 0.000001 us microsecond
time 0.001 ms millisecond
time 1 s sec second
time 60 min minute
time 3600 h hr hour
time 86400 d day
time 604800 week
calendar 1 month
calendar 12 yr year
area 1 m2
area 1000000 km2
area 10000 ha hectare
data 1 byte bytes
data 1000 kb kilobyte
data 1000000 mb megabyte
data 1000000000 gb gigabyte
data 1000000000000 tb terabyte
data 1024 kib kibibyte
data 1048576 mib mebibyte
data 1073741824 gib gibibyte
ratio 1 % percent pct
dollar 1 usd dollar
euro 1 eur euro
sterling 1 gbp pound
yen 1 jpy yen
celsius 1 °c celsius
fahrenheit 1 °f fahrenheit
kelvin 1 k kelvin
"""
CURRENCY_SIGNS: Mapping[str, str] = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy"}
SCALES: Mapping[str, Decimal] = {
    "hundred": Decimal(100),
    "thousand": Decimal(1000),
    "million": Decimal(10**6),
    "billion": Decimal(10**9),
    "trillion": Decimal(10**12),
}
_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SPELLED: Mapping[str, int] = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
_TEN, _HUNDRED = 10, 100
_MOST_WORDS = 3


def _read() -> tuple[Mapping[str, Unit], Mapping[str, str]]:
    units: dict[str, Unit] = {}
    names: dict[str, str] = {}
    for line in _TABLE.strip().splitlines():
        dimension, factor, *spellings = line.split()
        for spelling in spellings:
            units[spelling] = Unit(dimension, Decimal(factor))
            names[spelling] = names[f"{spelling}s"] = spellings[0]
    return units, names


UNITS, _NAMES = _read()


def unit_name(text: str) -> str | None:
    """A unit's canonical name; a noun that is no unit stands for itself in the singular.

    None for what cannot be a unit: more than `_MOST_WORDS` words, or anything but letters.
    """
    text = f"{_NAMES.get(text[7:])}2" if text.startswith("square ") else text
    if text in _NAMES:
        return _NAMES[text]
    words = text.split()
    if not 1 <= len(words) <= _MOST_WORDS or not all(word.isalpha() for word in words):
        return None
    if {"or", "and", "to"} & set(words):
        return None
    return text.removesuffix("s")


def spelled_number(words: Sequence[str]) -> int | None:
    """The value of "two hundred and five" and the like; None if it is no whole number in words."""
    if not words:
        return None
    total = group = 0
    previous = ""
    for word in words:
        if word == "and" and previous in SCALES:
            previous = word
            continue
        if word in _SPELLED:
            value = _SPELLED[word]
            if previous in _SPELLED and not (
                _SPELLED[previous] % _TEN == 0 and _SPELLED[previous] > _TEN > value > 0
            ):
                return None
            group += value
        elif word == "hundred" and 0 < group < _TEN:
            group *= _HUNDRED
        elif word in SCALES and word != "hundred" and group:
            total, group = total + group * int(SCALES[word]), 0
        else:
            return None
        previous = word
    return None if previous == "and" else total + group
