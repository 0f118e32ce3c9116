"""The image that the cases run in: a workdir with something to read, to edit and to delete."""

from collections.abc import Mapping
from pathlib import Path

IMAGE = "conformance"
WORKDIR = "/workspace"
LOWER: Mapping[str, bytes] = {
    "plain.txt": b"plain\n",
    "script.sh": b"#!/bin/sh\necho ran\n",
    "binary.dat": bytes(range(256)),
    "layered.txt": b"from the lower layer\n",
    "tree/one.txt": b"one\n",
    "tree/deep/two.txt": b"two\n",
    "tree/.git/config": b"[core]\n",
}
LINK = ("link", "plain.txt")
UPPER = b"from the upper layer\n"


def write_workspace(workspace: Path) -> None:
    """Fill the workdir of the image's lower layer."""
    for name, data in LOWER.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (workspace / LINK[0]).symlink_to(LINK[1])


def write_recipe(root: Path, name: str = IMAGE) -> None:
    """Write the image as a folder with a Dockerfile, below a root of images.

    In it are Python 3 and the usual small programs of Debian; a container's /bin/sh is enough of a
    shell. Whatever builds it, two layers come out above the base.
    """
    folder = root / name
    write_workspace(folder / "lower")
    (folder / "layered.txt").write_bytes(UPPER)
    (folder / "Dockerfile").write_text(
        "ARG BASE=host\nFROM ${BASE}\n"
        f"COPY lower {WORKDIR}\nCOPY layered.txt {WORKDIR}/\nWORKDIR {WORKDIR}\n"
    )
