"""Lines as runners print them, written with fields in braces for what varies in them."""

import re
from string import Formatter

_FIELDS = {
    "start": "^",
    "end": "$",
    "number": r"\d+",
    "some": r"[1-9]\d*",
    "version": r"[\d.]+",
    "counts": r"(?:\d+ \w+, )*",
    "word": r"\w+",
    "solid": r"\S+",
    "space": r"\s",
    "gap": r"\s+",
    "blank": r"[^\S\r\n]",
    "any": ".*",
    "short": ".+?",
    "block": r"(?s:.*?)",
    "name": "(?P<name>.*)",
    "first": "(?P<name>.*?)",
    "until": r"(?P<name>(?s:.*?))",
}


def shape(text: str, *, loose: bool = False) -> re.Pattern[str]:
    """Compile a shape. What stands outside of braces is meant literally.

    `name`, `first` (as short as may be) and `until` (over several lines) are what is looked for.
    With `loose` a space stands for any character that is white.
    """
    built = []
    for literal, field, _, _ in Formatter().parse(text):
        words = map(re.escape, literal.split(" "))
        built.append((_FIELDS["space"] if loose else " ").join(words))
        if field is not None:
            built.append(_FIELDS[field])
    return re.compile("".join(built), re.MULTILINE)


def any_shape(*texts: str) -> re.Pattern[str]:
    """Compile shapes of which one has to fit."""
    return re.compile("|".join(shape(text).pattern for text in texts), re.MULTILINE)
