"""What this machine offers to `local` sandboxes, found and tried once.

Started by root, a sandbox gives up every privilege before it makes its namespaces: uid 0 inside
would otherwise be root to the host's files.
"""

import asyncio
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox import binary, hierarchies
from gymsuite.sandbox.box import Answer
from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.keeper import Keeper
from gymsuite.sandbox.keepers import Keepers
from gymsuite.sandbox.resident import Resident
from gymsuite.sandbox.scene import Masks, Scene
from gymsuite.sandbox.scratch import Scratches, remove_stale
from gymsuite.sandbox.snapshots import Snapshots

UNPRIVILEGED = 59_847
"""Whom sandboxes and layers belong to when root starts them: a number that no account has."""

_TRIAL_SECONDS = 30.0
_HOW = (
    "The local provider needs user namespaces, which a machine denies by"
    " user.max_user_namespaces = 0 or kernel.apparmor_restrict_unprivileged_userns = 1 (see"
    " sysctl), and a container unless it was started with --security-opt seccomp=unconfined"
    " --security-opt systempaths=unconfined, or as a Kubernetes pod with hostUsers: false,"
    " procMount: Unmasked and seccompProfile: Unconfined; or use the docker provider"
)


@dataclass(frozen=True)
class LocalHost:
    """What was found. `uid` and `gid` are whom layers have to belong to.

    With `drops`, root is given up before a sandbox starts. With `users` there are more than root
    in a sandbox. Only `in_memory` can it be limited what a sandbox writes, and frozen: before Linux
    6.6, overlayfs needs a disk to write to.
    """

    uid: int
    gid: int
    drops: bool
    users: bool
    in_memory: bool
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
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SandboxError(str(error), retryable=False) from error
        drops, uid, gid = _sandbox_user()
        _allow_descriptors()
        cgroups = hierarchies.find()
        cgroups.remove_stale()
        scratches = Scratches(cache / "live")
        remove_stale(scratches.parent)
        keepers = Keepers(server, uid, gid, cgroups)
        host = cls(
            uid, gid, drops=drops, users=drops, in_memory=True, cgroups=cgroups,
            keepers=keepers, masks=Masks.find(), scratches=scratches, snapshots=Snapshots(),
        )  # fmt: skip
        try:
            complaint = ""
            layer = host.make_layer(cache)
            for candidate in (host, replace(host, users=False)) if drops else (host,):
                complaint, in_memory = _in_a_thread(candidate, layer)
                if not complaint:
                    return replace(candidate, in_memory=in_memory)
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
        """Make a directory for a build, with those of its overlay and an empty one."""
        directory = self.scratches.fresh()
        for path in (directory, *(directory / name for name in ("empty", "upper", "work"))):
            self._give(path)
        return directory

    def make_layer(self, cache: Path) -> Path:
        """Make an empty layer for trials, once for a cache: it stays, so a kill leaves no other."""
        layer = cache.absolute() / "trial"
        self._give(layer)
        return layer

    def _give(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
        if self.drops:
            os.chown(path, self.uid, self.gid)


def gives_up_root() -> bool:
    """Whether this is root, and has another user to give sandboxes and layers to."""
    if os.geteuid() != 0:
        return False
    return any(first <= UNPRIVILEGED < first + count for first, _, count in _users())


def _users() -> list[tuple[int, ...]]:
    """The users of this process's namespace: the first, what that one is outside, how many."""
    maps = Path("/proc/self/uid_map").read_text()
    return [tuple(map(int, line.split())) for line in maps.splitlines()]


def _sandbox_user() -> tuple[bool, int, int]:
    """Say whether root is to be given up, and whom sandboxes belong to."""
    if os.geteuid() != 0:
        return False, os.getuid(), os.getgid()
    if gives_up_root():
        return True, UNPRIVILEGED, UNPRIVILEGED
    if any(first == outside == 0 for first, outside, _ in _users()):
        raise SandboxError(
            "this process is the machine's root in a user namespace with no other user, and so"
            " would its sandboxes be; start it outside, or as an ordinary user",
            retryable=False,
        )
    return False, 0, 0


def _allow_descriptors() -> None:
    """Take as many descriptors as this process may have: each sandbox needs three."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _in_a_thread(host: LocalHost, layer: Path) -> tuple[str, bool]:
    """Wait for a trial; whoever wants to know may have an event loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _try(host, layer)).result()


async def _try(host: LocalHost, layer: Path) -> tuple[str, bool]:
    """Start a sandbox with no limits; say what went wrong, or whether it can write to memory."""
    try:
        box = await host.keeper().box()
    except SandboxError as error:
        return str(error), False
    try:
        resident = await Resident.start(box, _trial(host, layer))
        channel = Channel(await resident.connect())
        try:
            await channel.open(within=_TRIAL_SECONDS)
            return "", _keeps_attributes(await box.ask("upper", within=_TRIAL_SECONDS))
        except SandboxDead as error:
            return resident.complaint() or str(error), False
        finally:
            await channel.close()
            resident.close()
    except (OSError, SandboxError) as error:
        return str(error) or "it said nothing", False
    finally:
        await box.end()


def _trial(host: LocalHost, layer: Path) -> list[str]:
    scene = Scene(
        layers=(layer,),
        upper=(1 << 20, 0),
        shared=(1 << 20, 16),
        serve=("0",),
        masks=host.masks,
        users=host.users,
    )
    return ["--", *scene.words()]


def _keeps_attributes(answer: Answer) -> bool:
    """Whether a directory in memory remembers what overlayfs has to write down there."""
    if answer.descriptor is None:
        return False
    try:
        os.setxattr(answer.descriptor, "user.overlay.trial", b"y")
    except OSError:
        return False
    finally:
        os.close(answer.descriptor)
    return True
