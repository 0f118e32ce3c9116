"""Words that a database can keep: no NUL, no lone surrogates, no megabytes."""

from typing import Annotated

from pydantic import AfterValidator, Field

MOST_CHARACTERS = 4000


def keepable(text: str) -> str:
    """The text itself; raises `ValueError` for what UTF-8 or a database cannot carry."""
    if "\0" in text:
        message = "has a NUL character; leave it out"
        raise ValueError(message)
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "has half of a surrogate pair; send whole characters"
        raise ValueError(message) from None
    return text


Text = Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(keepable)]
"""A text argument; an agent that sends another kind is told why."""
