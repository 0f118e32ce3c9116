"""Whether the agent said something, without paying it for saying everything."""

import re
from collections.abc import Sequence

from gymsuite.worlds.gold import Fact

MOST_AMOUNTS = 12
"""A message with more amounts than this lists guesses, and tells nothing."""

_AMOUNT = re.compile(r"(?<![\w.,-])(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d{2}))?(?![\d,]*\.?\d)")


def told(fact: Fact, said: Sequence[str]) -> bool:
    """Whether one of the messages says it."""
    if fact.kind == "cents":
        return any(fact.value in amounts(text) for text in said)
    return any(_mentions(str(fact.value), text) for text in said)


def amounts(text: str) -> frozenset[int]:
    """The amounts in a message, in cents; none where there are more than `MOST_AMOUNTS`.

    A whole number may be dollars ($1,234 or 1234), so it is one of them.
    """
    found = frozenset(
        int(whole.replace(",", "")) * 100 + int(fraction or 0)
        for whole, fraction in _AMOUNT.findall(re.sub(r"[$€£]", " ", text))
    )
    return found if len(found) <= MOST_AMOUNTS else frozenset()


def _mentions(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
