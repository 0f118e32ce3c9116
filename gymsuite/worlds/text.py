"""Words: those that a database can keep (no NUL, no megabytes), and how people write them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

MOST_CHARACTERS = 4000


def _keepable(text: str) -> str:
    if "\0" in text:
        message = "has a NUL character; leave it out"
        raise ValueError(message)
    return text


Text = Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(_keepable)]
"""A text argument; an agent that sends another kind is told why."""

Identifier = Annotated[
    str,
    StringConstraints(strip_whitespace=True, to_upper=True, max_length=64),
    AfterValidator(_keepable),
]
"""An id as an agent may write it: case and the white space around it do not matter."""


def sentence(text: str) -> str:
    """With a capital letter at the beginning and after each full stop."""
    return re.sub(r"(^|\. )(\w)", lambda found: found[1] + found[2].upper(), text)


def dollars(cents: int) -> str:
    """An amount as people write it, whoever pays it."""
    return f"${abs(cents) // 100:,}.{abs(cents) % 100:02}"
