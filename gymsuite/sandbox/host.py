"""The `host` base: this machine's programs and the running interpreter, read-only, nothing else.

An allow-list, because a list of what to hide is never complete. Homes, /root, /var, /opt, /srv,
/tmp and most of /etc are not on it. Programs are shown where they are: a Python that is found
elsewhere than where it was installed finds the wrong libpython. What is on the list of /etc is
copied: it is small, and each mount more costs every sandbox a part of a millisecond.
"""

import hashlib
import os
import platform
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox import packages
from gymsuite.sandbox.base import ENV, Base, digest_of, write_accounts

_PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives",
    "crypto-policies",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "ssl/certs",
    "ssl/openssl.cnf",
)
_EMPTY = ("dev", "etc", "home", "mnt", "proc", "root", "run", "sys", "tmp", "var/tmp", "workspace")
_SHARED = ("tmp", "var/tmp")
_BIN = Path("/opt/gymsuite/bin")


def host_base() -> Base:
    """Describe this machine as a base. Raises `SandboxError` where its Python cannot be shared."""
    prefixes = _prefixes()
    interpreter = _interpreter(prefixes)
    links = dict(_program_links())
    programs = [Path("/", name) for name in _PROGRAMS if name not in links]
    settings = tuple(_settings())
    binds = _outermost([path for path in [*programs, *prefixes] if path.exists()])
    # What is shown under two names has its packages under both.
    named = (prefix for prefix in prefixes if prefix in binds)
    own = [Path("/usr"), Path("/usr/local"), prefixes[0], *named]
    hides = _outermost([*packages.installed(own), *packages.bundled()])
    version = platform.python_version()
    paths = map(str, [*binds, *hides])
    contents = digest_of(*(part for setting in settings for part in setting.identity))

    async def make(tree: Path) -> str:
        _fill(tree, binds, links, interpreter)
        for setting in settings:
            setting.put_below(tree)
        return version

    return Base(
        name="host",
        identity=(version, str(interpreter), *paths, *map(str, sorted(links.items())), contents),
        make=make,
        env={**ENV, "PATH": f"{_BIN}:{ENV['PATH']}"},
        binds=binds,
        hides=hides,
    )


@dataclass(frozen=True)
class _Setting:
    """A file or link of the host's /etc, as the layer has it."""

    path: Path
    data: bytes
    is_link: bool

    @property
    def identity(self) -> tuple[str, str]:
        return str(self.path), hashlib.sha256(self.data).hexdigest() + " link" * self.is_link

    def put_below(self, tree: Path) -> None:
        inside = tree / self.path.relative_to("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        if self.is_link:
            inside.symlink_to(os.fsdecode(self.data))
        else:
            inside.write_bytes(self.data)


def _settings() -> Iterator[_Setting]:
    """Read what is on the list of /etc; what only root may read is nobody's in a sandbox."""
    for top in (Path("/etc", name) for name in _ETC):
        for path in [top] if not top.is_dir() or top.is_symlink() else sorted(top.rglob("*")):
            if path.is_symlink():
                yield _Setting(path, os.fsencode(path.readlink()), is_link=True)
            elif path.is_file() and path.stat().st_mode & stat.S_IROTH:
                yield _Setting(path, path.read_bytes(), is_link=False)


def _fill(tree: Path, binds: Sequence[Path], links: dict[str, str], interpreter: Path) -> None:
    for name in _EMPTY:
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name in _SHARED:
        (tree / name).chmod(0o1777)
    (tree / "root").chmod(0o700)
    for name, target in links.items():
        (tree / name).symlink_to(target)
    # What a mount needs to lie on, here, would otherwise be made in each sandbox and look changed.
    for bind in binds:
        inside = tree / bind.relative_to("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        if bind.is_dir():
            inside.mkdir(exist_ok=True)
        else:
            inside.touch()
    write_accounts(tree)
    # UTC wherever it runs: tests of dates must not depend on where the machine stands.
    (tree / "etc/localtime").symlink_to("/usr/share/zoneinfo/UTC")
    (tree / "etc/os-release").symlink_to("../usr/lib/os-release")
    commands = tree / _BIN.relative_to("/")
    commands.mkdir(parents=True)
    for name in ("python", "python3", interpreter.name):
        (commands / name).symlink_to(interpreter)


def _prefixes() -> list[Path]:
    """Where the interpreter was installed: its real place, and the name it knows that by."""
    prefix = Path(sys.base_prefix)
    found = [prefix.resolve(), prefix]
    home = Path.home()
    if any(home.is_relative_to(path) for path in found):
        raise SandboxError(
            f"the host base would show {prefix}, where this Python is installed, to the sandbox,"
            f" and that holds the home directory {home}; use a Python from a directory of its own",
            retryable=False,
        )
    return found


def _interpreter(prefixes: Sequence[Path]) -> Path:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # A virtual environment's own python would need that environment; base_prefix looks through it.
    candidates = [*(prefix / "bin" / name for prefix in prefixes), Path(sys.executable).resolve()]
    for candidate in candidates:
        if candidate.exists() and any(candidate.is_relative_to(prefix) for prefix in prefixes):
            return candidate
    raise SandboxError(
        f"the host base needs the interpreter of {prefixes[0]}, and {candidates[0]} is missing;"
        " use a Python that was installed with its bin directory, or the debian base",
        retryable=False,
    )


def _program_links() -> Iterator[tuple[str, str]]:
    """Yield the top-level links of a merged /usr, as in bin -> usr/bin."""
    for name in _PROGRAMS:
        path = Path("/", name)
        if path.is_symlink() and path.resolve().is_relative_to("/usr"):
            yield name, str(path.resolve().relative_to("/"))


def _outermost(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Leave out paths that lie below others."""
    unique = sorted(set(paths))
    return tuple(
        path
        for path in unique
        if not any(path != other and path.is_relative_to(other) for other in unique)
    )
