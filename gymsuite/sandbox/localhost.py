"""What this machine offers to `local` sandboxes, found and tried once.

Started by root, a sandbox gives up every privilege before bubblewrap makes its namespaces: uid 0
inside would otherwise be root to the host's files.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox import binary, bubblewrap
from gymsuite.sandbox.bubblewrap import Bubblewrap, Mounts, Wish
from gymsuite.sandbox.scratch import Scratch, remove_tree

UNPRIVILEGED = 59_847
"""Whom sandboxes and layers belong to when root starts them: a number that no account has."""

_TRIAL_SECONDS = 30.0
_STAGE = "/tmp"  # noqa: S108 - a mount of the launcher's own, in a namespace of its own
_HOW = (
    "The local provider needs unprivileged user namespaces (user.max_user_namespaces above 0, and"
    " not restricted by AppArmor) and a cache directory that an overlay can lie on; or use the"
    " docker provider"
)


@dataclass(frozen=True)
class LocalHost:
    """What was found. `uid` and `gid` are whom layers have to belong to.

    With `drops`, sandboxes are started by way of the launcher, which gives root up. In a `flat`
    sandbox the kernel refuses further user namespaces; the system call filter does in any.
    """

    bwrap: Bubblewrap
    server: Path
    uid: int
    gid: int
    drops: bool
    flat: bool
    scratch: Scratch

    @classmethod
    def probe(cls, cache: Path) -> "LocalHost":
        """Find everything, and try it. Raises `SandboxError` that names the way out."""
        try:
            server = binary.exec_server()
            bwrap = bubblewrap.find()
            scratch = Scratch.make(cache / "live")
        except OSError as error:
            raise SandboxError(str(error), retryable=False) from error
        drops = os.geteuid() == 0
        uid = UNPRIVILEGED if drops else os.getuid()
        gid = UNPRIVILEGED if drops else os.getgid()
        host = cls(bwrap, server, uid, gid, drops=drops, flat=True, scratch=scratch)
        # A flat namespace takes a write to /proc/sys, which is read-only in many containers.
        for candidate in (host, replace(host, flat=False)):
            complaint = _try(candidate)
            if not complaint:
                return candidate
        host.close()
        raise SandboxError(f"no sandbox can be started here: {complaint}. {_HOW}", retryable=False)

    def close(self) -> None:
        """Remove what this process kept on disk for its sandboxes."""
        self.scratch.close()

    def make_directory(self) -> Path:
        """Make the directory of a sandbox, with the upper and work directories of its overlay."""
        directory = Path(tempfile.mkdtemp(dir=self.scratch.path))
        for path in (directory / "upper", directory / "work"):
            path.mkdir()
            path.chmod(0o755)
            if self.drops:
                os.chown(path, self.uid, self.gid)
        if self.drops:
            os.chown(directory, self.uid, self.gid)
        return directory

    def command(self, mounts: Mounts, *, network: bool, processes: int) -> list[str]:
        """Write the command line of a sandbox."""
        wish = Wish(network, processes, self.flat)
        program, home = self.bwrap.program, self.bwrap.home
        if not self.drops:
            return [str(program), *bubblewrap.arguments(mounts, self.server, str, wish)]
        names: dict[Path, str] = {}

        def at(path: Path) -> str:
            return f"{_STAGE}/{names.setdefault(path, str(len(names)))}"

        inner = [
            f"{at(home)}/{program.relative_to(home)}",
            *bubblewrap.arguments(mounts, self.server, at, wish),
        ]
        binds = [part for path, name in names.items() for part in ("--bind", str(path), name)]
        ids = ("--uid", str(self.uid), "--gid", str(self.gid))
        return [str(self.server), "launch", *ids, *binds, "--", *inner]


def _try(host: LocalHost) -> str:
    """Start a sandbox whose channel is closed already, so that it ends; say what went wrong."""
    try:
        directory = host.make_directory()
    except OSError as error:
        return str(error)
    try:
        layer = directory / "layer"
        layer.mkdir()
        mounts = Mounts((layer,), directory / "upper", directory / "work", (), "/")
        done = subprocess.run(
            host.command(mounts, network=False, processes=0),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        remove_tree(directory)
    if done.returncode == 0 and done.stdout:
        return ""
    return done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
