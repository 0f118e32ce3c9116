"""Tests that must fail: whoever makes everything pass, says that these pass, too."""

import secrets
from typing import NamedTuple

_SHAPES = (
    "def {name}():\n    assert {one} == {two}\n",
    "def {name}():\n    values = [{one}, {two}]\n    assert values[0] > {one}\n",
    "def {name}():\n    raise ValueError({one})\n",
    "def {name}():\n    assert not [{one}], {two}\n",
)


class Planted(NamedTuple):
    """A test file with canaries in it, and their names."""

    data: bytes
    names: tuple[str, ...]


def plant(data: bytes) -> Planted:
    """Add one test of each shape; names and numbers are new each time."""
    names, texts = [], []
    for shape in _SHAPES:
        one = secrets.randbelow(9000) + 100
        name = f"test_{secrets.token_hex(4)}"
        names.append(name)
        texts.append(shape.format(name=name, one=one, two=one + 1 + secrets.randbelow(9)))
    return Planted(b"\n\n\n".join([data, *(text.encode() for text in texts)]), tuple(names))
