"""What a container may do, in the words of the Engine's API ("ContainerCreate")."""

import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

from gymsuite.sandbox.accounts import ROOT, Account
from gymsuite.sandbox.engine import Wish
from gymsuite.sandbox.writable import Writable

SERVER = "/dev/.exec"
"""Where the exec server lies inside: on a file system of its own, so the image stays as it was."""

_CHANNEL = "/dev/.channel"
# For the exec server alone, which starts each command as whoever it should run as, and without.
_KEPT = ("KILL", "SETGID", "SETPCAP", "SETUID")
# The Engine's /dev has no limit of inodes; the others are what it has read-only by itself.
_READ_ONLY = ("/dev", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
# What outlives its process would be memory that no kill brings back.
_SYSCTLS = {
    "kernel.shm_rmid_forced": "1",
    "kernel.msgmni": "16",
    "kernel.sem": "250 32000 100 128",
}


def command(wish: Wish) -> list[str]:
    """Write the exec server's arguments."""
    return ["join", _CHANNEL, "serve", "0", "--memory", str(wish.memory_bytes)]


def host_config(wish: Wish) -> dict[str, object]:
    """Make the part of a container's configuration that says what it cannot do."""
    config: dict[str, object] = {
        "NetworkMode": "none",
        "IpcMode": "private",
        "CapDrop": ["ALL"],
        "CapAdd": list(_KEPT) if wish.account == ROOT else [],
        "SecurityOpt": ["no-new-privileges"],
        "Sysctls": _SYSCTLS,
        "ReadonlyRootfs": True,
        "ReadonlyPaths": list(_READ_ONLY),
        "Tmpfs": {place.path: _options(place, wish.account) for place in wish.places},
        # Said so, a missing source is an error; the Engine of another machine would make one.
        "Mounts": [
            _bind(wish.server, SERVER),
            _bind(wish.channel, _CHANNEL),
            *(_bind(path, target) for path, target in wish.sockets),
        ],
        "Memory": wish.memory_bytes,
        # The same number again means no swap beyond it.
        "MemorySwap": wish.memory_bytes,
        "NanoCpus": int(wish.cpus * 1e9),
        "PidsLimit": wish.pids,
        "Ulimits": list(_parts()),
        "Init": False,
        "AutoRemove": True,
        # The default would copy every frame into a file.
        "LogConfig": {"Type": "none", "Config": {}},
    }
    return config | ({"Runtime": wish.runtime} if wish.runtime else {})


def _parts() -> Iterator[Mapping[str, object]]:
    """Leave something of what the kernel counts for the user that all containers run as."""
    for name, kind, parts in (
        ("sigpending", resource.RLIMIT_SIGPENDING, 16),
        ("msgqueue", resource.RLIMIT_MSGQUEUE, 4),
    ):
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            yield {"Name": name, "Soft": most // parts, "Hard": most // parts}


def _bind(source: Path, target: str) -> dict[str, object]:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True}


def _options(place: Writable, owner: Account) -> str:
    limits = f"size={place.size_bytes},nr_inodes={place.inodes},mode={place.mode:o}"
    limits = f"{limits},uid={owner.uid},gid={owner.gid}"
    # relatime, so that the first read of a file after it was put there shows.
    return f"rw,exec,nosuid,nodev,relatime,{limits}"
