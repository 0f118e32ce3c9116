"""Reads small files of /proc and /sys, which may not be there."""

from pathlib import Path


def text(path: Path) -> str:
    """Return what a file says; "" where there is none, or it may not be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
