"""Quotes, escapes and variables in the words of a Dockerfile, as Docker reads them."""

import re
from collections.abc import Mapping

_QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
_WORD = re.compile(rf"(?:{_QUOTED}|[^\s'\"\\])+", re.DOTALL)
_VARIABLE = r"\$(?:\{(\w+)(?::([-+])([^{}]*))?\}|(\w+)|(.?))"
_PART = re.compile(rf"({_QUOTED})|{_VARIABLE}", re.DOTALL)
_INSIDE = re.compile(rf"(\\[\"$\\])|{_VARIABLE}", re.DOTALL)


def split(text: str) -> list[str]:
    """Split at spaces outside of quotes, which stay. Raises ValueError for one that is not closed.

    Variables are put in later, by `expand`: a value with a space in it makes no second word.
    """
    if _WORD.sub("", text).strip():
        raise ValueError(f"a quote or a backslash without its other half in '{text}'")
    return _WORD.findall(text)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Take the quotes off, and put values in place of variables.

    `$NAME`, `${NAME}`, `${NAME:-else}` and `${NAME:+then}`, as the shell knows them. Raises
    ValueError for a name that is not set: Docker would put nothing there and say nothing.
    """

    def part(match: re.Match[str]) -> str:
        quoted = match[1]
        if quoted is None:
            return _value(match, variables)
        if quoted.startswith("\\"):
            return quoted[1:]
        return quoted[1:-1] if quoted.startswith("'") else _INSIDE.sub(inside, quoted[1:-1])

    def inside(match: re.Match[str]) -> str:
        return match[1][1:] if match[1] else _value(match, variables)

    return _PART.sub(part, text)


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str:
    name, operator, word = match[2] or match[5], match[3], match[4]
    if name is None:
        raise ValueError(
            f"'{match[0]}': $NAME, ${{NAME}}, ${{NAME:-else}} and ${{NAME:+then}} are supported;"
            r" a literal dollar sign is \$"
        )
    if operator:
        is_set = bool(variables.get(name))
        if operator == "+":
            return expand(word, variables) if is_set else ""
        return variables[name] if is_set else expand(word, variables)
    if name not in variables:
        known = ", ".join(sorted(variables)) or "nothing"
        message = f"${name} is not set here; what is set: {known}; ${{{name}:-}} may be unset"
        raise ValueError(message)
    return variables[name]
