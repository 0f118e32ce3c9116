"""Upstream's own images: taken from Docker, pulled where it has them not, into the layer store."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gymsuite.errors import GymsuiteError, InfrastructureError, SandboxError
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.importing import Import, import_image
from gymsuite.sandbox.records import imported
from gymsuite.sandbox.store import Report
from gymsuite.swe.rows import Row
from gymsuite.swe.supply import official_name

_SECONDS = 3600.0


async def fetch_official(rows: Sequence[Row], cache: Path, report: Report) -> None:
    """Have the images that rows name, for every provider.

    What is wrong with one is reported, and costs the verdicts of its rows. Where there is not one
    image, the first trouble is raised: it names the way out.
    """
    images = Images((), cache, report=report)
    await asyncio.to_thread(cache.mkdir, parents=True, exist_ok=True)
    wrong: list[GymsuiteError] = []
    tried: set[str] = set()
    try:
        for row in rows:
            if row.image in tried:
                continue
            tried.add(row.image)
            try:
                if imported(cache, official_name(row)) is None:
                    await _fetch(row, images, report)
            except GymsuiteError as error:
                report(str(error))
                wrong.append(error)
    finally:
        images.close()
    if wrong and len(wrong) == len(tried):
        raise wrong[0]


async def _fetch(row: Row, images: Images, report: Report) -> None:
    if await _docker("image", "inspect", row.image):
        report(f"pulling {row.image}")
        if said := await _docker("pull", "--quiet", row.image):
            raise SandboxError(
                f"{row.instance_id}: Docker has no image {row.image} and cannot pull it: {said}; "
                "give a folder of clones to build it from: --repo-dir",
                retryable=False,
            )
    with tempfile.TemporaryDirectory(prefix="gymsuite-save-", dir=images.store.cache) as folder:
        tar = Path(folder) / "image.tar"
        report(f"importing {row.image}")
        if said := await _docker("save", "--output", str(tar), row.image):
            raise InfrastructureError(f"docker cannot save {row.image}: {said}")
        wanted = Import(source=tar, name=official_name(row))
        await import_image(images.store, wanted, report)


async def _docker(*arguments: str) -> str:
    """Run Docker's own command; returns what it complains of, or ""."""
    try:
        process = await asyncio.create_subprocess_exec(
            "docker",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return f"the command `docker` cannot be run: {error}"
    try:
        async with asyncio.timeout(_SECONDS):
            _, said = await process.communicate()
    except TimeoutError:
        return f"no end after {_SECONDS:.0f} seconds"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = said.decode(errors="replace").strip()[-300:]
    return (text or f"exit code {process.returncode}") if process.returncode else ""
