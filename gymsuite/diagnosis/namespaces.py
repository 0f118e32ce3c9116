"""Whether this machine lets a process make user namespaces, by all that may forbid it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gymsuite.diagnosis.finding import Finding
from gymsuite.diagnosis.reading import text

_AREA = "machine"
_FILTERED = "2"


class _Switch(NamedTuple):
    name: str
    path: str
    forbids: str
    fix: str


_SWITCHES = (
    _Switch(
        "user.max_user_namespaces", "proc/sys/user/max_user_namespaces", "0",
        "sysctl -w user.max_user_namespaces=15000, as root",
    ),
    _Switch(
        "kernel.unprivileged_userns_clone", "proc/sys/kernel/unprivileged_userns_clone", "0",
        "sysctl -w kernel.unprivileged_userns_clone=1, as root",
    ),
    _Switch(
        "AppArmor", "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, as root, or use docker",
    ),
)  # fmt: skip


def namespaces(root: Path) -> Iterator[Finding]:
    """Look below `root`; what only a trial can tell is the local provider's finding."""
    yield _user_namespaces(root)
    yield _seccomp(root)


def _user_namespaces(root: Path) -> Finding:
    seen: list[str] = []
    for switch in _SWITCHES:
        value = text(root / switch.path)
        if value == switch.forbids:
            detail = f"forbidden by {switch.name} = {value}"
            return Finding(_AREA, "user namespaces", "gap", detail, switch.fix)
        if value:
            seen.append(f"{switch.name} = {value}")
    if not (root / "proc/self/ns/user").is_symlink():
        fix = "a kernel with CONFIG_USER_NS, or the docker provider"
        return Finding(_AREA, "user namespaces", "gap", "the kernel has none", fix)
    return Finding(_AREA, "user namespaces", "ok", "; ".join(seen) or "nothing forbids them")


def _seccomp(root: Path) -> Finding:
    status = dict(
        line.split(":", 1) for line in text(root / "proc/self/status").splitlines() if ":" in line
    )
    mode = status.get("Seccomp", "").strip()
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    if mode == _FILTERED:
        detail = (
            f"{who}, under a filter of system calls, as in a container; it may forbid sandboxes"
        )
        fix = (
            "if the local provider fails: --security-opt seccomp=unconfined"
            " --security-opt systempaths=unconfined"
        )
        return Finding(_AREA, "privileges", "note", detail, fix)
    return Finding(_AREA, "privileges", "note", f"{who}, under no filter of system calls")
