"""Whom an image's commands run as: its user, as the image's own files name it.

The names come from whoever made the image, so they are data: read within the image, up to a bound.
"""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup, resolve

_MOST_BYTES = 1 << 20
_HIGHEST = (1 << 31) - 1


class Account(NamedTuple):
    """A user by the numbers inside, and where it is at home."""

    uid: int
    gid: int
    home: str


ROOT = Account(0, 0, "/root")


def account(layers: Sequence[Path], user: str) -> Account:
    """Find the user of an image: a name or number, or name:group, as Docker reads them.

    A number needs no entry: it is in group 0 then, and at home in "/". Raises ValueError for a
    name that the image does not have.
    """
    if user == "root":
        return ROOT
    name, _, group = user.partition(":")
    found = _user(layers, name)
    if not group:
        return found
    for entry in _entries(layers, "/etc/group", 3):
        if group in (entry[0], entry[2]) and _is_number(entry[2]):
            return found._replace(gid=int(entry[2]))
    if _is_number(group):
        return found._replace(gid=int(group))
    raise ValueError(f"no group {group!r} in the image's /etc/group; add it there, or use a number")


def account_of(image: Image) -> Account:
    """As `account`, for an image that is to run. Raises `SandboxError`."""
    try:
        return account(image.layers, image.user)
    except ValueError as error:
        message = f"image {image.name!r} runs as USER {image.user}: {error}"
        raise SandboxError(message, retryable=False) from error


def _user(layers: Sequence[Path], name: str) -> Account:
    for entry in _entries(layers, "/etc/passwd", 6):
        numbers = entry[2:4]
        if name in (entry[0], entry[2]) and all(map(_is_number, numbers)):
            uid, gid = map(int, numbers)
            return Account(uid, gid, entry[5] or "/")
    if _is_number(name):
        return Account(int(name), 0, "/")
    raise ValueError(f"no user {name!r} in the image's /etc/passwd; add it there, or use a number")


def _entries(layers: Sequence[Path], path: str, fields: int) -> Iterator[list[str]]:
    entry = lookup(layers, resolve(layers, path))
    if entry is None or not stat.S_ISREG(entry.status.st_mode):
        return
    with entry.path.open("rb") as file:
        text = file.read(_MOST_BYTES).decode(errors="replace")
    for line in text.splitlines():
        parts = line.split(":")
        if len(parts) >= fields:
            yield parts


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= _HIGHEST  # noqa: PLR2004 - no longer than the highest
