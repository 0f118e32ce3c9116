"""Small steps from one kind of value to another, and the values that a task begins with."""

import random
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TYPES = {
    "numbers": "list[int]",
    "words": "list[str]",
    "text": "str",
    "whole": "int",
    "number": "int",
    "scores": "dict[str, int]",
    "grid": "list[list[int]]",
    "rows": "list[list[int]]",
    "day": "str",
    "flag": "bool",
}

MEANINGS = {
    "numbers": "a list of integers",
    "words": "a list of lower-case words",
    "text": "a string",
    "whole": "a positive integer",
    "scores": "a dict from lower-case names to integers",
    "grid": "a list of one or more rows of integers, all of one length of at least 1",
    "day": "a date as an ISO string, such as '2031-02-28'",
}

_VOCABULARY = (
    "apple river stone cat over tree level window a echo green lamp see moon radio "
    "zebra noon ink deed paper cloud be harvest sea"
)
_WORDS = _VOCABULARY.split()


class Piece(NamedTuple):
    """One step: a phrase for the prompt, and an expression over `x` for the reference.

    `source` and `target` are kinds, the keys of `TYPES`. `{k}` in the three texts stands for one
    of `ks`.
    """

    source: str
    target: str
    name: str
    phrase: str
    code: str
    ks: tuple[int, ...] = ()

    def with_some_k(self, rng: random.Random) -> "Piece":
        """The same step with its number filled in."""
        if not self.ks:
            return self
        k = rng.choice(self.ks)
        name, phrase, code = (
            text.replace("{k}", str(k)).replace("{below_k}", str(k - 1))
            for text in (self.name, self.phrase, self.code)
        )
        return Piece(self.source, self.target, name, phrase, code)


def load_pieces() -> tuple[Piece, ...]:
    """All steps, in the order of pieces.toml."""
    table = tomllib.loads((Path(__file__).parent / "pieces.toml").read_text(encoding="utf-8"))
    return tuple(_piece(kinds, row) for kinds, rows in table.items() for row in rows)


def _piece(kinds: str, row: Sequence[Any]) -> Piece:
    source, target = kinds.split(" to ")
    name, phrase, code, *ks = row
    return Piece(source, target, name, phrase, code, tuple(*ks))


def _numbers(rng: random.Random) -> list[int]:
    most = rng.choice((4, 20))
    return [rng.randint(-most, most) for _ in range(rng.choice((0, 1, 2, 4, 5, 6, 7, 8, 9)))]


def _words(rng: random.Random) -> list[str]:
    return [rng.choice(_WORDS) for _ in range(rng.choice((0, 1, 2, 3, 4, 5, 6, 7)))]


def _text(rng: random.Random) -> str:
    words = [rng.choice((str.lower, str.title, str.upper))(word) for word in _words(rng)]
    return " ".join(words) + rng.choice(("", "", "!", "?", " 7", "..."))


def _whole(rng: random.Random) -> int:
    return rng.randint(1, rng.choice((12, 60, 300)))


def _scores(rng: random.Random) -> dict[str, int]:
    return {word: rng.randint(0, 9) for word in _words(rng)}


def _grid(rng: random.Random) -> list[list[int]]:
    width = rng.randint(1, 4)
    return [[rng.randint(-9, 9) for _ in range(width)] for _ in range(rng.randint(1, 4))]


def _day(rng: random.Random) -> str:
    return f"{rng.randint(1996, 2044)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


DRAWS: dict[str, Callable[[random.Random], object]] = {
    "numbers": _numbers,
    "words": _words,
    "text": _text,
    "whole": _whole,
    "scores": _scores,
    "grid": _grid,
    "day": _day,
}
"""Kinds that a task can begin with, and how a value of each is drawn."""
