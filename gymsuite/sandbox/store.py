"""The layers and images on this machine's disk, named by the hash of what they were made from.

    layers/<digest>/tree/         the files; layer.json beside it says what they are
    images/<name>/<digest>.json   which layers make an image
    locks/<digest>                exclusive to make or remove a layer, shared to use it

A layer is made under another name and renamed when it is whole, so a layer that is there is never
torn, whatever ended its maker.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.locks import Lock, exclusive, shared, try_exclusive
from gymsuite.sandbox.scratch import remove_tree
from gymsuite.sandbox.trees import Owner, settle
from gymsuite.types import Model

Report = Callable[[str], None]
"""Takes a line of progress for a person to read."""

_PARTIAL = ".partial-"
_MANIFEST = "layer.json"


class Layer(Model):
    """What a layer's manifest says about it."""

    format: Literal[1] = 1
    digest: str
    step: str
    size_bytes: int
    python: str = ""


class ImageRecord(Model):
    """What is on disk about an image: enough to say what it is and which layers it needs."""

    format: Literal[1] = 1
    name: str
    digest: str
    base: str
    layers: tuple[str, ...]
    python: str = ""


class ImageUsage(NamedTuple):
    """An image on disk. Layers that several images share count for each of them."""

    record: ImageRecord
    size_bytes: int


class Usage(NamedTuple):
    """What the store holds."""

    images: tuple[ImageUsage, ...]
    layers: tuple[Layer, ...]
    size_bytes: int


class Cleaned(NamedTuple):
    """What a cleaning removed, and which layers a running process still needs."""

    size_bytes: int
    removed: tuple[str, ...]
    in_use: tuple[str, ...]


class Store:
    """The store below a cache directory. `owner` is None where files stay their maker's."""

    def __init__(self, cache: Path, owner: Owner | None) -> None:
        self.cache = cache
        self._owner = owner

    def tree(self, digest: str) -> Path:
        """Where a layer's files are."""
        return self._layer(digest) / "tree"

    def lock(self, key: str) -> Path:
        """Where the lock of a key is."""
        return self.cache / "locks" / key

    def read(self, digest: str) -> Layer | None:
        """Return a layer's manifest, or None where the layer is not there."""
        return _read_layer(self._layer(digest) / _MANIFEST)

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

    def record(self, image: Image) -> None:
        """Note which layers make an image."""
        path = self.cache / "images" / image.name / f"{image.digest}.json"
        digests = tuple(layer.parent.name for layer in image.layers)
        record = ImageRecord(
            name=image.name,
            digest=image.digest,
            base=image.base,
            layers=digests,
            python=image.python,
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, record.model_dump_json(indent=1))
        except OSError as error:
            raise SandboxError(f"cannot write {path}: {error}", retryable=False) from error

    async def _make(self, digest: str, step: str, make: Callable[[Path], Awaitable[str]]) -> None:
        partial = self.cache / "layers" / f"{_PARTIAL}{digest}"
        tree = partial / "tree"
        try:
            # A layer without a readable manifest may be in the way: of another format, or damaged.
            for leftover in (partial, self._layer(digest)):
                await asyncio.to_thread(remove_tree, leftover)
            tree.mkdir(parents=True)
            partial.chmod(0o755)
            python = await make(tree)
            size = await asyncio.to_thread(settle, tree, self._owner)
            layer = Layer(digest=digest, step=step, size_bytes=size, python=python)
            _write(partial / _MANIFEST, layer.model_dump_json(indent=1))
            partial.rename(self._layer(digest))
        except OSError as error:
            message = f"cannot store a layer below {self.cache}: {error} (step: {step})"
            raise SandboxError(message, retryable=False) from error
        finally:
            if partial.exists():
                await asyncio.shield(asyncio.to_thread(remove_tree, partial))

    def _layer(self, digest: str) -> Path:
        return self.cache / "layers" / digest


def usage(cache: Path) -> Usage:
    """Say what the store below a cache directory holds."""
    layers = {layer.digest: layer for layer in _layers(cache)}
    images = tuple(
        ImageUsage(record, sum(layers[d].size_bytes for d in record.layers))
        for _, record in _records(cache)
        if all(digest in layers for digest in record.layers)
    )
    total = sum(layer.size_bytes for layer in layers.values())
    return Usage(images, tuple(layers.values()), total)


def clean(cache: Path, *, keep: Callable[[ImageRecord], bool] = lambda _: False) -> Cleaned:
    """Remove all layers but those of images to keep, and those that a running process uses."""
    store = Store(cache, None)
    kept: set[str] = set()
    for path, record in _records(cache):
        if keep(record):
            kept.update(record.layers)
        else:
            path.unlink(missing_ok=True)
    removed: list[str] = []
    in_use: list[str] = []
    size = 0
    for directory in sorted((cache / "layers").glob("*")):
        digest = directory.name.removeprefix(_PARTIAL)
        if digest in kept:
            continue
        lock = try_exclusive(store.lock(digest))
        if lock is None:
            in_use.append(digest)
            continue
        with contextlib.closing(lock):
            layer = store.read(digest)
            size += layer.size_bytes if layer else 0
            # Renamed first: a layer that is half removed must not look like a layer.
            partial = directory.with_name(f"{_PARTIAL}{digest}")
            if directory != partial:
                remove_tree(partial)
                directory.rename(partial)
            remove_tree(partial)
            removed.append(digest)
    return Cleaned(size, tuple(removed), tuple(in_use))


def _layers(cache: Path) -> Iterator[Layer]:
    for path in sorted((cache / "layers").glob(f"[!.]*/{_MANIFEST}")):
        layer = _read_layer(path)
        if layer is not None:
            yield layer


def _read_layer(path: Path) -> Layer | None:
    try:
        return Layer.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _records(cache: Path) -> Iterator[tuple[Path, ImageRecord]]:
    for path in sorted((cache / "images").glob("**/*.json")):
        try:
            record = ImageRecord.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValueError):
            continue
        yield path, record


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
