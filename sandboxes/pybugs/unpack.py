"""Unpacks source distributions into checkouts: `python unpack.py ARCHIVES CHECKOUTS PTH`.

Every file gets the mode 0644 and every directory 0755. PTH is a file of paths that puts the
checkouts behind all installed packages, so that none of their modules can stand in for another.
"""  # noqa: INP001 - a script of an image, no package

import sys
import tarfile
from pathlib import Path


def unpack(archive: Path, checkouts: Path) -> Path:
    """Unpack the one directory that an archive holds; links and devices are left out."""
    name = archive.name.removesuffix(".tar.gz").rpartition("-")[0].replace("_", "-")
    checkout = checkouts / name
    with tarfile.open(archive) as tar:
        for member in tar:
            inside = Path(member.name)
            parts = inside.parts[1:]
            if not member.isfile() or inside.is_absolute() or ".." in parts or not parts:
                continue
            content = tar.extractfile(member)
            target = checkout.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read() if content else b"")
            target.chmod(0o644)
    return checkout


def importable(checkout: Path) -> Path:
    """The directory of a checkout that holds its package."""
    source = checkout / "src"
    return source if source.is_dir() else checkout


def main() -> None:
    """Unpack them all, and write the paths down."""
    archives, checkouts, pth = map(Path, sys.argv[1:])
    found = [unpack(archive, checkouts) for archive in sorted(archives.glob("*.tar.gz"))]
    pth.write_text("".join(f"{importable(checkout)}\n" for checkout in found))


if __name__ == "__main__":
    main()
