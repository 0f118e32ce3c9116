"""Image archives of our own making, good and bad: layers, `docker save` tars and OCI layouts."""

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
HERE = ARCHITECTURES.get(platform.machine(), platform.machine())

Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, data: bytes = b"", mode: int = 0o644) -> Member:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, 1_000_000
    info.uid = info.gid = 1234
    return info, data


def folder(name: str, mode: int = 0o755) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, mode
    return info, b""


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def special(name: str, kind: bytes = tarfile.CHRTYPE) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.devmajor, info.devminor = kind, 0, 0
    return info, b""


def layer(*members: Member) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def config(layers: Iterable[bytes], architecture: str = HERE, **settings: Any) -> bytes:
    diff_ids = [digest(one) for one in layers]
    document = {
        "architecture": architecture,
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }
    return json.dumps(document).encode()


def tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            archive.addfile(*((info := file(name, data))[0], io.BytesIO(info[1])))
    return path


def docker_save(path: Path, layers: Sequence[bytes], **settings: Any) -> Path:
    """Write what `docker save` writes, in its older form."""
    document = config(layers, **settings)
    name = f"{digest(document)[7:]}.json"
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": name, "RepoTags": ["theirs:latest"], "Layers": names}]
    return tar(
        path,
        {
            **dict(zip(names, layers, strict=True)),
            name: document,
            "manifest.json": json.dumps(manifest).encode(),
        },
    )


def oci_files(layers: Sequence[bytes], *, packed: bool = True, **settings: Any) -> dict[str, bytes]:
    """The files of an OCI layout with one image."""
    blobs = [gzip.compress(one, mtime=0) if packed else one for one in layers]
    document = config(layers, **settings)
    kind = "application/vnd.oci.image.layer.v1.tar" + "+gzip" * packed
    manifest = {
        "schemaVersion": 2,
        "config": _descriptor(document, "application/vnd.oci.image.config.v1+json"),
        "layers": [_descriptor(blob, kind) for blob in blobs],
    }
    text = json.dumps(manifest).encode()
    described = {
        **_descriptor(text, "application/vnd.oci.image.manifest.v1+json"),
        "platform": {"os": "linux", "architecture": settings.get("architecture", HERE)},
        "annotations": {"org.opencontainers.image.ref.name": "latest"},
    }
    index = json.dumps({"schemaVersion": 2, "manifests": [described]}).encode()
    files = {f"blobs/sha256/{digest(blob)[7:]}": blob for blob in [*blobs, document, text]}
    return {**files, "index.json": index, "oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}


def write(directory: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return directory


def _descriptor(data: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest(data), "size": len(data)}
