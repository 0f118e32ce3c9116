"""Reads what an image archive holds: a `docker save` tar, or an OCI image layout.

Every document is read with a limit, and checked against the digest that names it.
"""

import hashlib
import platform
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from gymsuite.errors import UsageError
from gymsuite.sandbox.documents import (
    Config,
    Descriptor,
    Index,
    OciManifest,
    Platform,
    SavedImages,
    machine,
    parse,
)
from gymsuite.sandbox.image_archive import Archive

_MOST_BYTES = 8 << 20
_DEEPEST_INDEX = 4
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_HEX = re.compile(r"[0-9a-f]{64}")
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


class Blob(NamedTuple):
    """A layer of the archive: where it lies, its digest there ("" if unknown), and unpacked."""

    name: str
    digest: str
    diff_id: str


class Manifest(NamedTuple):
    """One image of an archive, lowest layer first. `digest` is that of its configuration."""

    digest: str
    config: Config
    layers: tuple[Blob, ...]


T = TypeVar("T")


def read_manifest(archive: Archive, tag: str) -> Manifest:
    """Read the one image of an archive, or the one of a tag, for this machine.

    Raises `UsageError` that says what there is instead.
    """
    saved = _read(archive, "manifest.json")
    if saved is not None:
        found = _saved(archive, saved, tag)
    elif (index := _read(archive, "index.json")) is not None:
        found = _oci(archive, parse(Index, index, "index.json"), tag)
    else:
        raise UsageError(
            "no manifest.json and no index.json: this is neither what `docker save` writes nor an"
            " OCI image layout (what `docker export` writes has no layers; use `docker save`)"
        )
    _check(found.config)
    return found


def _saved(archive: Archive, document: bytes, tag: str) -> Manifest:
    images = parse(SavedImages, b'{"images":' + document + b"}", "manifest.json").images
    tags = [", ".join(one.tags or ("untagged",)) for one in images]
    wanted = [one for one in images if not tag or tag in (one.tags or ())]
    one = _only(wanted, tags, tag)
    data = _require(archive, one.config)
    digest = hashlib.sha256(data).hexdigest()
    named = _HEX.search(one.config)
    if named and named[0] != digest:
        raise UsageError(f"{one.config} is damaged: its digest is sha256:{digest}")
    config = parse(Config, data, one.config)
    return Manifest(digest, config, _blobs(config, [(name, "") for name in one.layers]))


def _oci(archive: Archive, index: Index, tag: str) -> Manifest:
    named = [one for one in index.manifests if not tag or _is_called(one, tag)]
    tags = [", ".join(_names(one)) or one.digest for one in index.manifests]
    leaves = [leaf for one in named for leaf in _leaves(archive, one, 0)]
    here = [leaf for leaf in leaves if _runs_here(leaf.platform)]
    if leaves and not here:
        others = {leaf.platform.architecture for leaf in leaves if leaf.platform}
        raise UsageError(
            f"it is for {', '.join(sorted(others))}, and this machine is {platform.machine()}"
        )
    document = _blob(archive, _only(here, tags, tag).digest)
    manifest = parse(OciManifest, document, "the manifest")
    config = parse(Config, _blob(archive, manifest.config.digest), "the configuration")
    layers = [(_path(layer.digest), layer.digest) for layer in manifest.layers]
    digest = manifest.config.digest.removeprefix("sha256:")
    return Manifest(digest, config, _blobs(config, layers))


def _leaves(archive: Archive, descriptor: Descriptor, depth: int) -> Iterator[Descriptor]:
    """Yield the manifests that an index leads to; an index may hold others."""
    if depth > _DEEPEST_INDEX:
        raise UsageError("its indexes lie too deep in each other")
    if "index" in descriptor.media_type or "manifest.list" in descriptor.media_type:
        inner = parse(Index, _blob(archive, descriptor.digest), "an index")
        for one in inner.manifests:
            yield from _leaves(archive, one, depth + 1)
    # An attestation is kept as an image of an unknown kind.
    elif not (descriptor.platform and descriptor.platform.architecture == "unknown"):
        yield descriptor


def _runs_here(wanted: Platform | None) -> bool:
    if wanted is None or not wanted.architecture:
        return True
    return wanted.os == "linux" and machine(wanted.architecture) == platform.machine()


def _only(found: Sequence[T], tags: Sequence[str], tag: str) -> T:
    if len(found) == 1:
        return found[0]
    there = "; ".join(tags) or "none"
    if not found:
        raise UsageError(f"no image {tag!r} in it; there are: {there}")
    raise UsageError(f"it holds {len(found)} images; choose one by --tag: {there}")


def _names(descriptor: Descriptor) -> list[str]:
    annotations = descriptor.annotations or {}
    return [annotations[name] for name in _NAMES if name in annotations]


def _is_called(descriptor: Descriptor, tag: str) -> bool:
    return any(name == tag or name.endswith(f"/{tag}") for name in _names(descriptor))


def _blobs(config: Config, layers: Sequence[tuple[str, str]]) -> tuple[Blob, ...]:
    diff_ids = config.rootfs.diff_ids
    if len(layers) != len(diff_ids):
        raise UsageError(f"it has {len(layers)} layers, and its configuration {len(diff_ids)}")
    for diff_id in diff_ids:
        if not _DIGEST.fullmatch(diff_id):
            raise UsageError(f"a layer's digest is {diff_id[:80]!r}; only sha256 is supported")
    return tuple(
        Blob(name, digest, diff_id)
        for (name, digest), diff_id in zip(layers, diff_ids, strict=True)
    )


def _check(config: Config) -> None:
    if config.os != "linux" or config.machine != platform.machine():
        raise UsageError(
            f"it is for {config.os} on {config.machine}, and this machine is linux on"
            f" {platform.machine()}"
        )


def _path(digest: str) -> str:
    match = _DIGEST.fullmatch(digest)
    if match is None:
        raise UsageError(f"a digest {digest[:80]!r}; only sha256 is supported")
    return f"blobs/sha256/{match[1]}"


def _blob(archive: Archive, digest: str) -> bytes:
    data = _require(archive, _path(digest))
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
        raise UsageError(f"the blob {digest} is damaged: it has another digest")
    return data


def _require(archive: Archive, name: str) -> bytes:
    data = _read(archive, name)
    if data is None:
        raise UsageError(f"{name[:200]} is missing in it")
    return data


def _read(archive: Archive, name: str) -> bytes | None:
    file = archive.open(name)
    if file is None:
        return None
    with file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{name} has more than {_MOST_BYTES} bytes")
    return data
