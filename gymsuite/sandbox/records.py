"""What the store writes down about layers and images, and how it is read again."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field

from gymsuite.sandbox.image import Image
from gymsuite.types import Model

PARTIAL = ".partial-"
"""How the name of a layer begins while it is made, or removed."""

MANIFEST = "layer.json"


class Layer(Model):
    """What a layer's manifest says about it."""

    format: Literal[1] = 1
    digest: str
    step: str
    size_bytes: int
    python: str = ""


class ImageRecord(Model):
    """What is on disk about an image: what it is and which layers it needs.

    An imported image is opened again by what stands here; a built one by its Dockerfile. `user`
    and `env` of a record that an older version wrote are empty.
    """

    format: Literal[1] = 1
    name: str
    digest: str
    base: str
    layers: tuple[str, ...]
    python: str = ""
    origin: Literal["built", "imported"] = "built"
    env: Mapping[str, str] = Field(default_factory=dict)
    workdir: str = ""
    user: str = ""
    architecture: str = ""


def layer_folder(cache: Path, digest: str) -> Path:
    """Where a layer is."""
    return cache / "layers" / digest


def record_of(image: Image, origin: Literal["built", "imported"]) -> ImageRecord:
    """Write an image down."""
    return ImageRecord(
        name=image.name,
        digest=image.digest,
        base=image.base,
        layers=tuple(layer.parent.name for layer in image.layers),
        python=image.python,
        origin=origin,
        env=image.env,
        workdir=image.workdir,
        user=image.user,
        architecture=image.architecture,
    )


def image_of(cache: Path, record: ImageRecord) -> Image:
    """Read an imported image."""
    return Image(
        name=record.name,
        digest=record.digest,
        base=record.base,
        layers=tuple(layer_folder(cache, digest) / "tree" for digest in record.layers),
        env=record.env,
        workdir=record.workdir,
        architecture=record.architecture,
        python=record.python,
        user=record.user,
    )


def record_path(cache: Path, record: ImageRecord) -> Path:
    """Where an image is written down."""
    return cache / "images" / record.name / f"{record.digest}.json"


def read_layer(cache: Path, digest: str) -> Layer | None:
    """Return a layer's manifest, or None where the layer is not there, or not whole."""
    return _read(layer_folder(cache, digest) / MANIFEST)


def layers(cache: Path) -> Iterator[Layer]:
    """All whole layers."""
    for path in sorted((cache / "layers").glob(f"[!.]*/{MANIFEST}")):
        layer = _read(path)
        if layer is not None:
            yield layer


def records(cache: Path) -> Iterator[tuple[Path, ImageRecord]]:
    """All images that were written down, and where; layers of some may be gone."""
    return _records(cache / "images", "*/*.json")


def imported(cache: Path, name: str) -> ImageRecord | None:
    """Return the imported image of a name."""
    if name != Path(name).name:
        return None
    found = (record for _, record in _records(cache / "images" / name, "*.json"))
    return next((record for record in found if record.origin == "imported"), None)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole, or not at all, whatever ends its writer."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _records(folder: Path, pattern: str) -> Iterator[tuple[Path, ImageRecord]]:
    for path in sorted(folder.glob(pattern)):
        with suppress(FileNotFoundError, ValueError):
            yield path, ImageRecord.model_validate_json(path.read_bytes())


def _read(path: Path) -> Layer | None:
    try:
        return Layer.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
