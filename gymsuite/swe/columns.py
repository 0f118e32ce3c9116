"""Reads the columns of one foreign row; what is wrong names the file, the row and the column."""

import json
import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from pydantic import JsonValue

from gymsuite.errors import DefinitionError

_MOST_CHARACTERS = 64 << 20
_LITERAL = re.compile(r"""\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)")\s*""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_LAST_CODE_POINT = 0x10FFFF


class Columns(NamedTuple):
    """One row as it was found, and where: `file: row 3`.

    `within` is the column that an inner row is the value of, and a dot.
    """

    where: str
    values: Mapping[str, JsonValue]
    within: str = ""

    def has(self, *names: str) -> bool:
        """Whether all these columns are there, whatever they hold."""
        return all(name in self.values for name in names)

    def text(self, name: str, default: str | None = None, *, right: str = "text") -> str:
        """A column of text. Without a default it must be there; null counts as the default.

        `right` says in an error what would be right.
        """
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise self._missing(name, right)
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.wrong(name, f"is {_kind(value)}", right)
        return str(value)

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts: as it is, as JSON in a string, or as Python prints it."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise self._missing(name, "a list of texts")
            return default
        items = self._listed(name, value) if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.wrong(name, f"is {_kind(items)}", "a list of texts, or one as JSON")
        return tuple(str(item) for item in items)

    def mapping(self, name: str) -> Mapping[str, JsonValue]:
        """An object: as it is, or as JSON in a string; empty where the column is not there."""
        value = self.values.get(name)
        if isinstance(value, str) and value.strip():
            value = self._json(name, value)
        if value is None or value == "":
            return {}
        if not isinstance(value, dict):
            raise self.wrong(name, f"is {_kind(value)}", "an object, or one as JSON")
        return value

    def inner(self, name: str) -> "Columns":
        """The columns of an object within this row."""
        return Columns(self.where, self.mapping(name), f"{self.within}{name}.")

    def rest(self, read: Collection[str]) -> Mapping[str, JsonValue]:
        """The columns that no reader asks for."""
        return {name: value for name, value in self.values.items() if name not in read}

    def wrong(self, name: str, what: str, right: str) -> DefinitionError:
        """The error for a column: where it is, what is wrong, and what would be right."""
        return DefinitionError(
            f"{self.where}: column {self.within}{name} {what}; it should be {right}"
        )

    def _missing(self, name: str, right: str) -> DefinitionError:
        if name in self.values:
            return self.wrong(name, "is null", right)
        close = get_close_matches(name, self.values, n=1, cutoff=0.85)
        hint = f" (is {close[0]!r} meant for it?)" if close else ""
        return self.wrong(name, f"is missing{hint}", right)

    def _listed(self, name: str, text: str) -> JsonValue:
        try:
            return self._json(name, text)
        except DefinitionError:
            items = parse_python_list(text)
            if items is None:
                raise
            return list(items)

    def _json(self, name: str, text: str) -> JsonValue:
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.wrong(name, f"is no JSON ({error})", "JSON") from error
        return value


def parse_python_list(text: str) -> list[str] | None:
    """Read a list of plain string literals as Python prints it; None for anything else.

    Nothing is evaluated: there are literals, commas and the two brackets, or there is no list.
    """
    inner = text.strip()
    if len(text) > _MOST_CHARACTERS or not (inner.startswith("[") and inner.endswith("]")):
        return None
    inner = inner[1:-1].strip()
    items: list[str] = []
    at = 0
    while at < len(inner):
        match = _LITERAL.match(inner, at)
        if match is None:
            return None
        items.append(_ESCAPE.sub(_unescaped, match[1] if match[1] is not None else match[2]))
        at = match.end()
        if at < len(inner) and inner[at] != ",":
            return None
        at += 1
    return items


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        number = int(digits, 16)
        return chr(number) if number <= _LAST_CODE_POINT else match[0]
    if match[4] in _NAMED:
        return _NAMED[match[4]]
    return match[4] if match[4] in "\\'\"" else match[0]


def _kind(value: JsonValue) -> str:
    shown = json.dumps(value)
    return shown if len(shown) < 60 else f"{shown[:57]}..."  # noqa: PLR2004 - one line of an error
