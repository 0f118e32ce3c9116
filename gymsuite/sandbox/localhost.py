"""What this machine offers to `local` sandboxes, found and tried once.

Started by root, a sandbox gives up every privilege before bubblewrap makes its namespaces: uid 0
inside would otherwise be root to the host's files.
"""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox import binary, bubblewrap, hierarchies
from gymsuite.sandbox.bubblewrap import Bubblewrap, Masks, Mounts, Wish
from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.keeper import Keeper
from gymsuite.sandbox.keepers import Keepers
from gymsuite.sandbox.resident import Resident
from gymsuite.sandbox.scratch import Scratches, remove_stale
from gymsuite.sandbox.snapshots import Snapshots
from gymsuite.sandbox.stage import Stage

UNPRIVILEGED = 59_847
"""Whom sandboxes and layers belong to when root starts them: a number that no account has."""

_TRIAL_SECONDS = 30.0
_HOW = (
    "The local provider needs unprivileged user namespaces (user.max_user_namespaces above 0, not"
    " restricted by AppArmor, and in a container a seccomp profile that allows them, as"
    " --security-opt seccomp=unconfined or a Kubernetes pod with hostUsers: false has); or use the"
    " docker provider"
)


@dataclass(frozen=True)
class LocalHost:
    """What was found. `uid` and `gid` are whom layers have to belong to.

    With `drops`, root is given up before a sandbox starts. In a `flat` sandbox the kernel refuses
    further user namespaces; the system call filter does in any.
    """

    bwrap: Bubblewrap
    server: Path
    uid: int
    gid: int
    drops: bool
    flat: bool
    cgroups: Cgroups
    keepers: Keepers
    masks: Masks
    scratches: Scratches
    snapshots: Snapshots

    @classmethod
    def probe(cls, cache: Path) -> "LocalHost":
        """Find everything, and try it. Raises `SandboxError` that names the way out."""
        try:
            server = binary.exec_server()
            bwrap = bubblewrap.find()
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SandboxError(str(error), retryable=False) from error
        drops = os.geteuid() == 0
        uid = UNPRIVILEGED if drops else os.getuid()
        gid = UNPRIVILEGED if drops else os.getgid()
        cgroups = hierarchies.find()
        cgroups.remove_stale()
        scratches = Scratches(cache / "live")
        remove_stale(scratches.parent)
        keepers = Keepers(server, uid, gid, cgroups)
        host = cls(
            bwrap, server, uid, gid, drops=drops, flat=True,
            cgroups=cgroups, keepers=keepers, masks=Masks.find(), scratches=scratches,
            snapshots=Snapshots(),
        )  # fmt: skip
        try:
            complaint = ""
            layer = host.make_directory() / "upper"
            # A flat namespace takes a write to /proc/sys, read-only in many containers.
            for candidate in (host, replace(host, flat=False)):
                complaint = _in_a_thread(candidate, layer)
                if not complaint:
                    return candidate
        except OSError as error:
            complaint = str(error)
        finally:
            scratches.close()
        host.close()
        raise SandboxError(f"no sandbox can be started here: {complaint}. {_HOW}", retryable=False)

    def keeper(self) -> Keeper:
        """Return this process's keeper. Raises `SandboxError`."""
        return self.keepers.current()

    def close(self) -> None:
        """End this process's sandboxes, and remove what it kept for them."""
        self.keepers.close()
        self.scratches.close()

    def make_directory(self) -> Path:
        """Make a directory for a build, with the upper and work directories of its overlay."""
        directory = self.scratches.fresh()
        for path in (directory, directory / "upper", directory / "work"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
            if self.drops:
                os.chown(path, self.uid, self.gid)
        return directory

    def run(self, stage: Stage, mounts: Mounts, wish: Wish) -> list[str]:
        """Write the words that make bubblewrap of a sandbox's first process."""
        program, home = self.bwrap.program, self.bwrap.home
        command = f"{stage.host(home)}/{program.relative_to(home)}"
        arguments = bubblewrap.arguments(mounts, wish, flat=self.flat, masks=self.masks)
        return [*stage.words, "run", command, *arguments]


def _in_a_thread(host: LocalHost, layer: Path) -> str:
    """Wait for a trial; whoever wants to know may have an event loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _try(host, layer)).result()


async def _try(host: LocalHost, layer: Path) -> str:
    """Start a sandbox on a layer, with no limits; say what went wrong."""
    stage, key = Stage(), "trial"
    mounts = Mounts(stage.host(host.server), (stage.host(layer),), stage.kept(key), (), "/")
    try:
        box = await host.keeper().box()
    except SandboxError as error:
        return str(error)
    try:
        run = host.run(stage, mounts, Wish(network=False, serve=("0",), shm_bytes=1 << 20))
        resident = await Resident.start(box, ["upper", key, "1m", "0", "--", *run])
        channel = Channel(await resident.connect())
        try:
            await channel.open(within=_TRIAL_SECONDS)
        except SandboxDead as error:
            return resident.complaint() or str(error)
        else:
            return ""
        finally:
            await channel.close()
            resident.close()
    except (OSError, SandboxError) as error:
        return str(error) or "it said nothing"
    finally:
        await box.end()
