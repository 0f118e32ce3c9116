"""What the store holds, and how it is had back: all of it, or what was not used for longest.

A layer that a live process holds is never touched: its lock is the kernel's, and ends with the
process. Images that were imported cannot be made again, so only who says so removes them.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from gymsuite.sandbox.locks import try_exclusive
from gymsuite.sandbox.records import (
    PARTIAL,
    ImageRecord,
    Layer,
    layer_folder,
    layers,
    read_layer,
    records,
)
from gymsuite.sandbox.scratch import remove_tree


class ImageUsage(NamedTuple):
    """An image on disk, and when it was last used, in seconds since 1970.

    Layers that several images share count for each of them.
    """

    record: ImageRecord
    size_bytes: int
    used_at: float


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


def usage(cache: Path) -> Usage:
    """Say what the store below a cache directory holds."""
    known = {layer.digest: layer for layer in layers(cache)}
    images = tuple(
        ImageUsage(record, sum(known[d].size_bytes for d in record.layers), _used_at(path))
        for path, record in records(cache)
        if all(digest in known for digest in record.layers)
    )
    return Usage(images, tuple(known.values()), sum(la.size_bytes for la in known.values()))


def clean(cache: Path, *, keep: Callable[[ImageRecord], bool] = lambda _: False) -> Cleaned:
    """Remove all layers but those of images to keep, and those that a running process uses."""
    kept: set[str] = set()
    for path, record in records(cache):
        if keep(record):
            kept.update(record.layers)
        else:
            path.unlink(missing_ok=True)
    there = {path.name.removeprefix(PARTIAL) for path in (cache / "layers").glob("*")}
    return _remove_each(cache, sorted(there - kept))


def clean_partial(cache: Path, *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove what makers of layers left that were killed; return the layers' digests."""
    left = sorted(
        path.name.removeprefix(PARTIAL) for path in (cache / "layers").glob(f"{PARTIAL}*")
    )
    found = []
    for digest in left:
        lock = try_exclusive(_lock(cache, digest))
        if lock is not None:
            with contextlib.closing(lock):
                found.append(digest)
                if not dry_run:
                    remove_tree(layer_folder(cache, f"{PARTIAL}{digest}"))
    return tuple(found)


def shrink(cache: Path, limit_bytes: int) -> Cleaned:
    """Remove what was not used for longest until the rest takes no more than a limit.

    Layers of no image go first, then the images, oldest use first.
    """
    cleaned = Cleaned(0, (), ())
    while True:
        used = usage(cache)
        excess = used.size_bytes - limit_bytes
        if excess <= 0:
            return cleaned
        step = _shrink_once(cache, used)
        if not step.removed:
            return cleaned._replace(in_use=step.in_use)
        cleaned = Cleaned(
            cleaned.size_bytes + step.size_bytes, (*cleaned.removed, *step.removed), ()
        )


def _shrink_once(cache: Path, used: Usage) -> Cleaned:
    """Remove the next best thing: layers of no image, or the image that was used least lately."""
    images = sorted(records(cache), key=lambda found: _used_at(found[0]))
    needed = Counter(digest for _, record in images for digest in {*record.layers})
    orphans = [layer.digest for layer in used.layers if layer.digest not in needed]
    done = _remove_each(cache, orphans)
    if done.removed:
        return done
    in_use = [*done.in_use]
    for path, record in images:
        own = [digest for digest in reversed(record.layers) if needed[digest] == 1]
        if record.origin == "imported" or not own:
            continue
        done = _remove_all(cache, own)
        if done.removed:
            path.unlink(missing_ok=True)
            return done
        in_use.extend(done.in_use)
    return Cleaned(0, (), tuple(in_use))


def _remove_each(cache: Path, digests: Iterable[str]) -> Cleaned:
    cleaned = [_remove_all(cache, [digest]) for digest in digests]
    return Cleaned(
        sum(one.size_bytes for one in cleaned),
        tuple(digest for one in cleaned for digest in one.removed),
        tuple(digest for one in cleaned for digest in one.in_use),
    )


def _remove_all(cache: Path, digests: Iterable[str]) -> Cleaned:
    """Remove layers, or none of them where a process uses one."""
    with contextlib.ExitStack() as locks:
        wanted = tuple(digests)
        for digest in wanted:
            lock = try_exclusive(_lock(cache, digest))
            if lock is None:
                return Cleaned(0, (), (digest,))
            locks.callback(lock.close)
        size = 0
        for digest in wanted:
            layer = read_layer(cache, digest)
            size += layer.size_bytes if layer else 0
            _remove(cache, digest)
        return Cleaned(size, wanted, ())


def _remove(cache: Path, digest: str) -> None:
    # Renamed first: a layer that is half removed must not look like a layer.
    directory, partial = layer_folder(cache, digest), layer_folder(cache, f"{PARTIAL}{digest}")
    remove_tree(partial)
    with contextlib.suppress(FileNotFoundError):
        directory.rename(partial)
    remove_tree(partial)


def _lock(cache: Path, digest: str) -> Path:
    return cache / "locks" / digest


def _used_at(path: Path) -> float:
    # A record is written again whenever its image is asked for.
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
