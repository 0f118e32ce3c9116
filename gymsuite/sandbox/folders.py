"""Finds the folder of an image by its name: one below the roots, however many roots there are."""

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.copying import digest_of_folder

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")  # what Docker takes, too
_RESERVED = frozenset({"host", "debian"})


def is_name(name: str) -> bool:
    """Whether an image may be called so."""
    return bool(_NAME.fullmatch(name)) and name not in _RESERVED


def wrong_name(name: str) -> str:
    """Say what is wrong with a name, and what would be right."""
    return (
        f"{name!r} is no name for an image; it would be in lower case, with '-', '_' or '.' between"
        " words, and neither host nor debian"
    )


def find(roots: Sequence[Path], name: str) -> Path | None:
    """Return the Dockerfile of an image, or None.

    Two folders of one name have to be alike: which of them an environment meant nobody could say.
    Raises `DefinitionError` where they are not.
    """
    if not _NAME.fullmatch(name):
        return None
    paths = [root / name / "Dockerfile" for root in dict.fromkeys(roots)]
    found = [path for path in paths if path.is_file()]
    for other in found[1:]:
        if digest_of_folder(other.parent) != digest_of_folder(found[0].parent):
            raise DefinitionError(
                f"image {name!r} is in two folders, and they differ: {found[0].parent} and"
                f" {other.parent}; give one of them another name"
            )
    return found[0] if found else None


def unknown(roots: Sequence[Path], imported: Iterable[str], name: str) -> DefinitionError:
    """Make the error for a name that no image has."""
    paths = (path for root in roots for path in root.glob("*/Dockerfile"))
    folders = {path.parent.name for path in paths if path.is_file() and is_name(path.parent.name)}
    known = sorted(folders | {*imported})
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'none'}"
    if not is_name(name):
        return DefinitionError(f"{wrong_name(name)}; {hint}")
    where = ", ".join(map(str, roots)) or "no folder"
    return DefinitionError(
        f"no image {name!r} (a folder with a Dockerfile) in {where}, and none was imported under"
        f" that name; {hint}"
    )
