"""Finds in what somebody says the facts that they cannot have: numbers, addresses, names."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\s\"“”()\[\]{}<>,;!?*]+")
_SENTENCE = re.compile(r"[.!?:;]\s+|\n+|(?:^|\s)[^\w\s&+/@#]+\s")
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LEADING_ZERO = re.compile(r"(?<![\d:])0(?=\d:\d\d)")
_NAME = re.compile(r"[A-Z][a-z]+\Z")
_COURTESIES = frozenset(
    [
        "Best",
        "Cheers",
        "Dear",
        "Hello",
        "Hey",
        "Hi",
        "Kind",
        "Madam",
        "No",
        "Ok",
        "Okay",
        "Please",
        "Regards",
        "Sir",
        "Sorry",
        "Sure",
        "Thank",
        "Thanks",
        "Yes",
    ]
)
_TRIM = ".:'\N{RIGHT SINGLE QUOTATION MARK}$€£#-\N{EN DASH}"


def unfounded(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """The facts in a text that stand in nothing of what is known, each once, in order.

    A fact is a word with a digit or an @ in it, or one that begins with a capital letter without
    beginning its sentence. Neither case matters, nor whether it is 1,234 or 1234, 09:30 or 9:30.
    """
    text, source = _spelt_alike(text), _spelt_alike("\n".join(known)).lower()
    facts = [word for word in map(_trimmed, _WORD.findall(text)) if _is_datum(word)]
    facts += [word for sentence in _SENTENCE.split(text) for word in _names(sentence)]
    return tuple(dict.fromkeys(fact for fact in facts if not _stands_in(source, fact.lower())))


def _spelt_alike(text: str) -> str:
    return _LEADING_ZERO.sub("", _GROUPING.sub("", text))


def _trimmed(word: str) -> str:
    return word.strip(_TRIM)


def _is_datum(word: str) -> bool:
    return any(letter.isdigit() or letter == "@" for letter in word)


def _names(sentence: str) -> list[str]:
    words = [trimmed for word in _WORD.findall(sentence) if (trimmed := _trimmed(word))]
    return [word for word in words[1:] if _NAME.match(word) and word not in _COURTESIES]


def _stands_in(source: str, fact: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", source) is not None
