"""Folds what differs between spellings of one text, and nothing that tells things apart."""

import re
import unicodedata

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_SINGLE = "\u2018\u2019\u201a\u201b\u02bc\u0060\u00b4\u2032"
_DOUBLE = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033"
_ALIKE = str.maketrans(
    {**dict.fromkeys(_DASHES, "-"), **dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DOUBLE, '"')}
)
_NOT_BETWEEN_DIGITS = re.compile(r"(?<!\d)[.,]|[.,](?!\d)")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ARTICLE = re.compile(r"^(?:(?:a|an|the) )+(?=\S)")
_BRACKETS = re.compile(r"[()\[\]{}:;!?*]")
_DROPPED = re.compile(r"[\"'`]")
_JOINERS = re.compile(r"(?<=\w)[-/_](?=\w)|(?<!\S)-(?!\S)")
_LEAD = re.compile(r"^(?:the )?(?:final )?answer(?: is:?|:)\s*")
_MARKED = re.compile(r"(\*\*|\*|`)(?P<bare>[^*`]+)\1|\\boxed\{(?P<boxed>[^{}]+)\}")


def fold(text: str) -> str:
    """Unicode compatibility forms, accents, case, quotes, dashes and white space."""
    text = unicodedata.normalize("NFKC", text.translate(_ALIKE)).translate(_ALIKE)
    # Turkish dotted capital I folds to "i" plus a combining dot, so marks go after case.
    text = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in text if not unicodedata.combining(char) and _visible(char))
    return " ".join(kept.split())


def _visible(char: str) -> bool:
    return unicodedata.category(char) != "Cf"


def canonical(text: str) -> str:
    """A text's canonical form for comparison: "The U.S." is "us", "C++" stays "c++".

    Full stops and commas go unless they are part of a number; hyphens and slashes are spaces.
    """
    text = _DROPPED.sub("", _BRACKETS.sub(" ", fold(text)))
    text = _GROUPED.sub("", text)
    text = _NOT_BETWEEN_DIGITS.sub(lambda match: "" if match[0] == "." else " ", text)
    text = _JOINERS.sub(" ", text)
    return _ARTICLE.sub("", " ".join(text.split()))


def bare(answer: str) -> str:
    """An answer without lead-in ("The answer is"), final full stop, emphasis or box around it."""
    stripped = " ".join(answer.split())
    folded = _LEAD.match(stripped.casefold())
    if folded and len(stripped.casefold()) == len(stripped):
        stripped = stripped[folded.end() :]
    stripped = stripped.removesuffix(".").strip()
    marked = _MARKED.fullmatch(stripped)
    return (marked["bare"] or marked["boxed"]).strip() if marked else stripped
