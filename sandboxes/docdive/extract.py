"""Collects the documentation of unpacked source distributions as one file of JSON lines.

Usage: extract.py SDISTS OUT. What it writes is the same bytes from the same sources everywhere.
"""  # noqa: INP001 - a script of an image, no package

import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

FOLDERS = {
    "aiohttp": ("docs/", ".rst"),
    "celery": ("docs/", ".rst"),
    "django": ("docs/", ".txt"),
    "gunicorn": ("docs/source/", ".rst"),
    "scrapy": ("docs/", ".rst"),
    "sphinx": ("doc/", ".rst"),
    "sqlalchemy": ("doc/build/", ".rst"),
}
# They repeat what the reference says of versions.
HISTORY = re.compile(r"chang|news|releases?/|whatsnew|history|migration|deprecat|includes?/")
UNDERLINE = re.compile(r"^(\S[^\n]*)\n([=\-~^\"*#+])\2{2,}\s*$", re.MULTILINE)
SHORTEST = 400


def documents(archive: Path) -> Iterator[dict[str, str]]:
    """The pages of one project; ids are PROJECT/PATH."""
    project = archive.name.split("-")[0].lower()
    folder, suffix = FOLDERS[project]
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if not member.isfile() or not path.startswith(folder) or not path.endswith(suffix):
                continue
            inside = path.removeprefix(folder)
            data = tar.extractfile(member)
            if data is None or HISTORY.search(inside.lower()):
                continue
            text = data.read().decode(errors="replace").replace("\r\n", "\n")
            if len(text) >= SHORTEST:
                found = UNDERLINE.search(text)
                title = found[1].strip() if found else inside
                yield {"id": f"{project}/{inside}", "title": f"{project}: {title}", "text": text}


def main() -> None:
    """Write all pages in the order of their ids."""
    rows = [row for archive in sorted(Path(sys.argv[1]).iterdir()) for row in documents(archive)]
    out = Path(sys.argv[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as lines:
        for row in sorted(rows, key=lambda row: row["id"]):
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
