"""Finds the exec server's binary, and builds it from C where a checkout or a wheel is made."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

_SOURCES = Path(__file__).parent / "exec_server"
_BINARIES = Path(__file__).parent / "bin"
_FLAGS = ("-O2", "-static", "-Wall", "-Wextra")
_HOW = "install gcc and the static C library (on Debian or Ubuntu: apt-get install gcc libc6-dev)"


class BuildError(Exception):
    """The exec server could not be compiled; the message says what to install."""


def exec_server(architecture: str = "") -> Path:
    """Where the binary for an architecture is, by default this machine's.

    Raises FileNotFoundError that names the way out.
    """
    binary = _BINARIES / f"exec-server-{architecture or platform.machine()}"
    if not binary.is_file():
        raise FileNotFoundError(
            f"the exec server {binary} is missing: run 'pip install -e .' in a checkout, or "
            "'pip install --force-reinstall gymsuite' on this architecture"
        )
    return binary


def build(into: Path = _BINARIES) -> Path:
    """Compile the exec server for this machine. Raises `BuildError`."""
    compiler = os.environ.get("CC", "cc")
    binary = into / f"exec-server-{platform.machine()}"
    into.mkdir(exist_ok=True)
    if not shutil.which(compiler):
        raise BuildError(f"no C compiler {compiler!r} to build the exec server with: {_HOW}")
    # Moved into place, so that a server that runs just now keeps its file.
    fresh = binary.with_suffix(f".{os.getpid()}")
    sources = sorted(map(str, _SOURCES.glob("*.c")))
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(fresh), *sources], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError(f"{compiler} cannot build the exec server: {_HOW}\n{done.stderr[-2000:]}")
    fresh.replace(binary)
    return binary
