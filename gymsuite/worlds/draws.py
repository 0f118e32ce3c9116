"""Random draws from a key: the same on every machine, Python version and hash seed."""

import hashlib
from collections.abc import Sequence
from math import gcd
from typing import TypeVar

T = TypeVar("T")
_WORD_BYTES = 8
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Draws:
    """A stream of draws. Equal keys give equal streams; nothing else has a say.

    `random.Random` promises that only for `random()` itself, so the streams here are counters
    through a hash.
    """

    def __init__(self, *key: str | int) -> None:
        self._key = "|".join(map(str, key)).encode()
        self._counter = 0
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """An integer from 0 up to but not including `bound`."""
        if not self._words:
            block = hashlib.blake2b(self._key + b"#%d" % self._counter).digest()
            self._counter += 1
            self._words = [
                int.from_bytes(block[at : at + _WORD_BYTES], "big")
                for at in range(0, len(block), _WORD_BYTES)
            ]
        return (self._words.pop() * bound) >> (8 * _WORD_BYTES)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred draws."""
        return self.below(100) < percent

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items, in a drawn order."""
        pool = list(items)
        for at in range(count):
            other = at + self.below(len(pool) - at)
            pool[at], pool[other] = pool[other], pool[at]
        return pool[:count]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items, in a drawn order."""
        return self.sample(items, len(items))


def scatter(number: int, bound: int, *key: str | int) -> int:
    """Where a number ends up in a range that is mixed up by a key.

    Numbers that differ by less than `bound` never meet, whatever else is drawn: so what is told by
    their places is told apart.
    """
    stride = next(step for step in range(bound * 5 // 8, 2 * bound) if gcd(step, bound) == 1)
    return (number * stride + Draws(*key).below(bound)) % bound


def mint(prefix: str, *key: str | int) -> str:
    """An id that follows from its key alone, such as `ORD-4F7K2QN`."""
    digest = hashlib.blake2b("|".join(map(str, key)).encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    letters = "".join(_ALPHABET[(number >> (5 * at)) & 31] for at in range(7))
    return f"{prefix}-{letters}"
