"""The layers and images on this machine's disk, named by the hash of what they were made from.

    layers/<digest>/tree/         the files; layer.json beside it says what they are
    images/<name>/<digest>.json   which layers make an image
    locks/<digest>                exclusive to make or remove a layer, shared to use it

A layer is made under another name and renamed when it is whole, so a layer that is there is never
torn, whatever ended its maker.
"""

import asyncio
import contextlib
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.collecting import shrink, usage
from gymsuite.sandbox.disk import limit_of, show_size
from gymsuite.sandbox.locks import Lock, exclusive, shared
from gymsuite.sandbox.records import (
    MANIFEST,
    PARTIAL,
    ImageRecord,
    Layer,
    layer_folder,
    read_layer,
    record_path,
    write_whole,
)
from gymsuite.sandbox.scratch import remove_tree
from gymsuite.sandbox.trees import Owner, settle

Report = Callable[[str], None]
"""Takes a line of progress for a person to read."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Store:
    """The store below a cache directory. `owner` is None where files stay their maker's."""

    def __init__(self, cache: Path, owner: Owner | None) -> None:
        self.cache = cache
        self._owner = owner
        self._made = False

    def tree(self, digest: str) -> Path:
        """Where a layer's files are."""
        return layer_folder(self.cache, digest) / "tree"

    def lock(self, key: str) -> Path:
        """Where the lock of a key is."""
        return self.cache / "locks" / key

    def read(self, digest: str) -> Layer | None:
        """Return a layer's manifest, or None where the layer is not there."""
        return read_layer(self.cache, digest)

    async def ensure(
        self, digest: str, step: str, make: Callable[[Path], Awaitable[str]], report: Report
    ) -> Lock:
        """Make a layer unless it is there, and return a lock that keeps it in place.

        `make` fills an empty directory and returns the version of the Python that it put there, or
        "". Processes that want the same layer make it once.
        """

        def waiting() -> None:
            report(f"waiting for another process: {step}")

        while True:
            lock = await shared(self.lock(digest), waiting=waiting)
            if self.read(digest) is not None:
                return lock
            lock.close()
            # Read again afterwards: a lock cannot be exchanged for another in one move.
            with contextlib.closing(await exclusive(self.lock(digest), waiting=waiting)):
                if self.read(digest) is None:
                    await self._make(digest, step, make)

    def record(self, record: ImageRecord) -> None:
        """Note which layers make an image, and that it is used now."""
        path = record_path(self.cache, record)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, record.model_dump_json(indent=1))
        except OSError as error:
            raise SandboxError(f"cannot write {path}: {error}", retryable=False) from error

    async def keep_to_limit(self, report: Report) -> None:
        """Where a layer was made since, remove what was used least lately beyond the limit."""
        if not self._made:
            return
        self._made = False
        limit = limit_of(self.cache)
        cleaned = await asyncio.to_thread(shrink, self.cache, limit)
        if cleaned.removed:
            report(f"layers removed to keep the cache below its limit: {len(cleaned.removed)}")
        left = (await asyncio.to_thread(usage, self.cache)).size_bytes
        if left > limit:
            report(
                f"the images take {show_size(left)}, and the limit is {show_size(limit)}: those"
                " that are left are in use, or were imported"
            )

    async def _make(self, digest: str, step: str, make: Callable[[Path], Awaitable[str]]) -> None:
        partial = layer_folder(self.cache, f"{PARTIAL}{digest}")
        tree = partial / "tree"
        try:
            # A layer without a readable manifest may be in the way: of another format, or damaged.
            for leftover in (partial, layer_folder(self.cache, digest)):
                await asyncio.to_thread(remove_tree, leftover)
            tree.mkdir(parents=True)
            partial.chmod(0o755)
            python = await make(tree)
            size = await asyncio.to_thread(settle, tree, self._owner)
            layer = Layer(digest=digest, step=step, size_bytes=size, python=python)
            write_whole(partial / MANIFEST, layer.model_dump_json(indent=1))
            partial.rename(layer_folder(self.cache, digest))
            self._made = True
        except OSError as error:
            message = f"cannot store a layer below {self.cache}: {error} (step: {step})"
            if error.errno in _FULL:
                message += "; have disk space back by `gymsuite cache clean`, or use another disk"
            raise SandboxError(message, retryable=False) from error
        finally:
            if partial.exists():
                await asyncio.shield(asyncio.to_thread(remove_tree, partial))
