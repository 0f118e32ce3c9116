"""Takes an image of a `docker save` tar or an OCI layout into the store, layer by layer.

A layer is named by the digest of its tar, which it is checked against: two images that share a
layer share it here, too, and one that is damaged is not there at all.
"""

import asyncio
import errno
import posixpath
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gymsuite.errors import UsageError
from gymsuite.sandbox import instructions
from gymsuite.sandbox.accounts import account
from gymsuite.sandbox.base import ENV, digest_of
from gymsuite.sandbox.decompressing import Budget, Reader, damages, decompressed, raw
from gymsuite.sandbox.disk import free_bytes, require_space
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.image_archive import Archive, open_archive
from gymsuite.sandbox.interpreter import python_of
from gymsuite.sandbox.manifests import Blob, Manifest, read_manifest
from gymsuite.sandbox.merging import MOST_LAYERS, join_layers
from gymsuite.sandbox.records import record_of, record_path, records
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.threads import in_thread
from gymsuite.sandbox.unpacking import unpack

_MOST_ENTRIES = 2_000_000
_MOST_LAYERS = MOST_LAYERS - 8  # so that an image can start from it
# What a file system says of a name or a link that is no good, rather than of itself.
_BAD_NAMES = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP, errno.EMLINK})

T = TypeVar("T")
_Fill = Callable[[Path, Callable[[], bool]], None]


@dataclass(frozen=True)
class Import:
    """What to import, and as what.

    `tag` chooses among several images, `user` replaces the image's own (None leaves it), and
    `max_bytes` is the most that it may unpack to (None: what the disk has room for).
    """

    source: Path
    name: str
    tag: str = ""
    user: str | None = None
    max_bytes: int | None = None


async def import_image(store: Store, wanted: Import, report: Report) -> Image:
    """Import an image; what had the name before is forgotten.

    Raises `UsageError` for an archive that cannot be trusted or is not for this machine, and
    `SandboxError` where the disk has no room.
    """
    require_space(store.cache, _size(wanted.source), f"importing {wanted.source}")
    free = free_bytes(store.cache)
    most = free if wanted.max_bytes is None else min(wanted.max_bytes, free)
    with ExitStack() as stack:
        with _blamed(f"{wanted.source}"):
            opening = open_archive(wanted.source, store.cache, Budget(most, _MOST_ENTRIES))
            archive = await _in_thread(lambda _: stack.enter_context(opening))
            manifest = read_manifest(archive, wanted.tag)
        layers = _Layers(store, wanted, report, Budget(most, _MOST_ENTRIES), stack)
        digests = await layers.add(archive, manifest)
        image = _image(wanted, manifest, [store.tree(digest) for digest in digests])
        for path, old in list(records(store.cache)):
            if old.name == wanted.name and old.origin == "imported":
                path.unlink(missing_ok=True)
        store.record(record_of(image, "imported"))
    await store.keep_to_limit(report)
    return image


def forget(store: Store, name: str) -> bool:
    """Forget an imported image; its layers go when the store needs room. False if there is none."""
    found = [one for _, one in records(store.cache) if (one.name, one.origin) == (name, "imported")]
    for record in found:
        record_path(store.cache, record).unlink(missing_ok=True)
    return bool(found)


@dataclass(frozen=True)
class _Layers:
    """The layers of one import, as far as they got. Locks that keep them in place go to `held`."""

    store: Store
    wanted: Import
    report: Report
    budget: Budget
    held: ExitStack

    async def add(self, archive: Archive, manifest: Manifest) -> Sequence[str]:
        """Add all layers, and return their digests, lowest first and none twice."""
        digests: list[str] = []
        for number, blob in enumerate(manifest.layers, start=1):
            # The same directory cannot be mounted twice in one overlay.
            again = sum(one.diff_id == blob.diff_id for one in manifest.layers[: number - 1])
            digest = digest_of("imported", blob.diff_id, *[str(again)] * bool(again))
            where = f"layer {number} of {len(manifest.layers)}"
            await self._ensure(digest, where, self._unpacker(archive, blob, where))
            digests.append(digest)
        if len(digests) <= _MOST_LAYERS:
            return digests
        low, high = digests[: 1 - _MOST_LAYERS], digests[1 - _MOST_LAYERS :]
        trees = [self.store.tree(digest) for digest in low]
        flat = digest_of("flat", *low)
        await self._ensure(
            flat, f"{len(low)} layers in one", lambda tree, _: join_layers(trees, tree)
        )
        return [flat, *high]

    async def _ensure(self, digest: str, what: str, fill: _Fill) -> None:
        async def make(tree: Path) -> str:
            self.report(f"{self.wanted.name}: {what}")
            await _in_thread(lambda stopped: fill(tree, stopped))
            return ""

        lock = await self.store.ensure(digest, f"import: {what}", make, self.report)
        self.held.callback(lock.close)

    def _unpacker(self, archive: Archive, blob: Blob, where: str) -> _Fill:
        def fill(tree: Path, stopped: Callable[[], bool]) -> None:
            with _blamed(f"{self.wanted.source}: {where}"):
                file = archive.open(blob.name)
                if file is None:
                    raise UsageError(f"{blob.name} is missing in it")
                with file:
                    packed = Reader(file)
                    done = unpack(decompressed(raw(packed)), tree, self.budget, stopped)
                    packed.drain()
                _compare(blob.diff_id, done.digest)
                _compare(blob.digest, packed.digest)
            if done.left_out:
                self.report(f"{self.wanted.name}: {done.left_out} devices and pipes left out")

        return fill


def _compare(expected: str, found: str) -> None:
    if expected and expected != found:
        raise UsageError(f"it is damaged: its digest is {found}, and should be {expected}")


def _image(wanted: Import, manifest: Manifest, layers: Sequence[Path]) -> Image:
    settings = manifest.config.settings
    pairs = (variable.partition("=") for variable in settings.env or ())
    digest, user = manifest.digest, settings.user or "root"
    if wanted.user is not None and wanted.user != user:
        digest, user = digest_of("user", digest, wanted.user), wanted.user
    with _blamed(f"{wanted.source}"):
        user = instructions.user(user)
    try:
        home = account(layers, user).home
    except ValueError as error:
        message = f"{wanted.source}: it runs as USER {user}: {error}; --user names another one"
        raise UsageError(message) from error
    return Image(
        name=wanted.name,
        digest=digest,
        base="imported",
        layers=tuple(layers),
        env={**ENV, "HOME": home, **{name: value for name, _, value in pairs}},
        workdir=posixpath.join("/", settings.workdir or ""),
        architecture=manifest.config.machine,
        python=python_of(layers),
        user=user,
    )


@contextmanager
def _blamed(where: str) -> Iterator[None]:
    """Turn what is wrong with an archive into a `UsageError` that says where."""
    try:
        yield
    except OSError as error:
        # Without a number it is a decompressor's complaint.
        if error.errno is not None and error.errno not in _BAD_NAMES:
            raise
        raise UsageError(f"{where}: {error}") from error
    except (UsageError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: {error}") from error
    except tarfile.TarError as error:
        raise UsageError(f"{where}: it is no tar, or a damaged one: {error}") from error
    except damages() as error:
        raise UsageError(f"{where}: it is damaged: {error}") from error


async def _in_thread(function: Callable[[Callable[[], bool]], T]) -> T:
    """Run something in a thread that is told to stop, and waited for, when this is cancelled."""
    stop = threading.Event()
    work = in_thread(lambda: function(stop.is_set))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([work])
        raise


def _size(source: Path) -> int:
    """What is to be unpacked at least."""
    files = source.glob("blobs/*/*") if source.is_dir() else [source]
    try:
        return sum(path.stat().st_size for path in files)
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from error
