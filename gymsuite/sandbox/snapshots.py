"""The snapshots of one provider, by name, for as long as anybody holds their images."""

import secrets
from collections.abc import MutableMapping
from dataclasses import replace
from weakref import WeakValueDictionary

from gymsuite.errors import SandboxError
from gymsuite.sandbox.image import Image

_PREFIX = "snapshot:"


class Snapshots:
    """Images that are no folder's, but were made of a live sandbox."""

    def __init__(self) -> None:
        self._images: MutableMapping[str, Image] = WeakValueDictionary()

    def add(self, image: Image) -> Image:
        """Give an image a name of its own, by which `find` has it."""
        named = replace(image, name=f"{_PREFIX}{secrets.token_hex(8)}")
        self._images[named.name] = named
        return named

    def find(self, name: str) -> Image | None:
        """Return a snapshot, or None where a name is not one's.

        Raises `SandboxError` for a snapshot that nobody holds any more.
        """
        if not name.startswith(_PREFIX):
            return None
        image = self._images.get(name)
        if image is None:
            raise SandboxError(
                f"there is no {name}: a snapshot is gone with the last reference to its image, and"
                " no other provider or process has it",
                retryable=False,
            )
        return image
