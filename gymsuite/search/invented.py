"""Invented words, for worlds that nobody has read about: pronounceable, never the same twice."""

import random
from collections.abc import Collection

_ONSETS = (
    "b", "br", "d", "dr", "f", "g", "h", "j", "k", "kr", "l", "m", "n", "p", "r", "s", "sk", "st",
    "t", "tr", "v", "vl", "z", "zh",
)  # fmt: skip
_VOWELS = ("a", "e", "i", "o", "u", "ae", "ei", "oa", "y")
_CODAS = ("", "k", "l", "m", "n", "nd", "r", "s", "th")


class Words:
    """Draws words; all worlds of a corpus draw from one bank, so that none share a name.

    `reserved` are words of the language, which name nobody.
    """

    def __init__(self, rng: random.Random, reserved: Collection[str]) -> None:
        self._rng = rng
        self._taken = {word.capitalize() for word in reserved}

    def draw(self, syllables: int) -> str:
        """A word that was not drawn before, capitalised."""
        while True:
            parts = [
                self._rng.choice(_ONSETS) + self._rng.choice(_VOWELS) for _ in range(syllables)
            ]
            word = ("".join(parts) + self._rng.choice(_CODAS)).capitalize()
            if word not in self._taken:
                self._taken.add(word)
                return word
