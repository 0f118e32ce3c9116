"""The `debian` base: a small Debian with Python and git, made by debootstrap.

Only root can run debootstrap. The packages come from the mirror that this machine's apt uses, or
from debootstrap's own default.
"""

import asyncio
import difflib
import os
import re
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.base import ENV, Base, write_accounts
from gymsuite.sandbox.disk import require_space
from gymsuite.sandbox.scratch import remove_tree
from gymsuite.sandbox.store import Report

DEFAULT_RELEASE = "bookworm"

_SCRIPTS = Path("/usr/share/debootstrap/scripts")
_PACKAGES = ("ca-certificates", "git", "patch", "python3", "python3-venv")
_DEADLINE_SECONDS = 1800.0
_NEEDED_BYTES = 1 << 30
_TOOLS = {"debootstrap": "debootstrap", "unshare": "util-linux", "setpriv": "util-linux"}
_TRIMMED = (
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
    "dev",
)
# debootstrap copies the first two from this machine, and writes its mirror into the third.
_REMOVED = ("etc/resolv.conf", "etc/hostname", "etc/apt/sources.list", "etc/machine-id")
_STAGES = ("Retrieving", "Extracting", "Unpacking", "Configuring")
_SHOWN_LINES = 15
_PYTHON = re.compile(r"^Package: python3\.\d+\n(?:.+\n)*?Version: (\d+\.\d+\.\d+)", re.MULTILINE)


class Source(NamedTuple):
    """Where apt gets a release from, and what its signatures are checked with."""

    mirror: str
    keyring: str


def debian_base(release: str, report: Report) -> Base:
    """Describe a release of Debian, such as "bookworm", as a base."""

    async def make(tree: Path) -> str:
        require_space(tree, _NEEDED_BYTES, f"making Debian {release}")
        await _debootstrap(tree, release, report)
        await asyncio.to_thread(_trim, tree)
        return python_version(tree)

    return Base(
        name="debian",
        identity=(release, *_PACKAGES),
        make=make,
        env={**ENV},
    )


def unknown_release(release: str, scripts: Path = _SCRIPTS) -> str:
    """Say what is wrong with the name of a release; "" where this machine could make it.

    Where there is no debootstrap nobody knows, and making the base says so.
    """
    known = [path.name for path in scripts.glob("*")]
    if not known or release in known:
        return ""
    close = difflib.get_close_matches(release, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it knows {DEFAULT_RELEASE!r}"
    return f"debootstrap here, which may be old, knows no release {release!r}; {hint}"


def python_version(tree: Path) -> str:
    """Read from dpkg's records which Python a tree has; nothing in the tree is run."""
    try:
        found = _PYTHON.search((tree / "var/lib/dpkg/status").read_text("utf-8"))
    except FileNotFoundError:
        return ""
    return found[1] if found else ""


def find_source(apt: Path, release: str) -> Source | None:
    """Find where the apt configuration in a directory gets a release of Debian from."""
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    for file in files:
        if file.suffix not in {".list", ".sources"} or not file.is_file():
            continue
        text = file.read_text("utf-8", errors="replace")
        read = _read_sources if file.suffix == ".sources" else _read_list
        for suite, components, source in read(text):
            if suite == release and "main" in components:
                return source
    return None


def _read_list(text: str) -> Iterator[tuple[str, list[str], Source]]:
    """Read the one-line format of sources.list(5)."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if match:
            keyring = re.search(r"signed-by=(\S+)", match[1] or "")
            yield match[3], match[4].split(), Source(match[2], keyring[1] if keyring else "")


def _read_sources(text: str) -> Iterator[tuple[str, list[str], Source]]:
    """Read the deb822 format of sources.list(5)."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE))
        if "deb" not in fields.get("Types", "").split() or fields.get("Enabled") == "no":
            continue
        keyring = fields.get("Signed-By", "").strip()
        for suite in fields.get("Suites", "").split():
            for mirror in fields.get("URIs", "").split():
                source = Source(mirror, keyring if keyring.startswith("/") else "")
                yield suite, fields.get("Components", "").split(), source


async def _debootstrap(tree: Path, release: str, report: Report) -> None:
    _check_tools()
    source = find_source(Path("/etc/apt"), release)
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}"]
    if source and source.keyring:
        command.append(f"--keyring={source.keyring}")
    command += [release, str(tree), *([source.mirror] if source else [])]
    report(f"making a Debian ({release}) with debootstrap; this takes about a minute")
    process = await asyncio.create_subprocess_exec(
        # It mounts into the tree and runs what it unpacked: both end with this process.
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    tail: deque[str] = deque(maxlen=_SHOWN_LINES)
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await _follow(process, release, tail, report)
            code = await process.wait()
    except TimeoutError as error:
        raise SandboxError(
            f"debootstrap {release} took longer than {_DEADLINE_SECONDS:.0f} seconds; its last"
            f" lines:\n{_lines(tail)}"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
    if code != 0:
        raise SandboxError(
            f"debootstrap {release} failed with exit code {code}; its last lines:\n{_lines(tail)}"
        )


async def _follow(
    process: asyncio.subprocess.Process, release: str, tail: deque[str], report: Report
) -> None:
    """Keep the last lines of the output, and report where a new stage begins."""
    stages = list(_STAGES)
    if process.stdout is None:
        return
    async for raw in process.stdout:
        line = raw.decode(errors="replace").rstrip()
        tail.append(line)
        # It goes back and forth between stages, and only forth is news.
        begun = next((stage for stage in stages if line.startswith(f"I: {stage}")), "")
        if begun:
            del stages[: stages.index(begun) + 1]
            report(f"debian ({release}): {begun.lower()} packages")


def _check_tools() -> None:
    if os.getuid() != 0:
        raise SandboxError(
            "the debian base is made by debootstrap, which only root can run; use the host base"
            " (provider 'local'), or run this once as root",
            retryable=False,
        )
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    if missing:
        raise SandboxError(
            f"the debian base needs {' and '.join(missing)}; install with"
            f" 'apt-get install {' '.join(missing)}', or use the host base (provider 'local')",
            retryable=False,
        )


def _trim(tree: Path) -> None:
    for name in _TRIMMED:
        remove_tree(tree / name)
        (tree / name).mkdir()
    for name in _REMOVED:
        (tree / name).unlink(missing_ok=True)
    (tree / "workspace").mkdir()
    (tree / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    write_accounts(tree)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)
