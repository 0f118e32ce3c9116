"""What is said of machines that can do little, and of sandboxes that keep nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.diagnosis.finding import Finding
from gymsuite.diagnosis.machine import machine
from gymsuite.diagnosis.programs import disk, programs
from gymsuite.diagnosis.provider import try_limits
from gymsuite.diagnosis.trials import SLOW_TRIALS, SMALL, TRIALS, Trial
from gymsuite.sandbox.protocol import ExecResult

_EVERY = (*TRIALS, *SLOW_TRIALS)
_OWN_NAMESPACE = str(Path("/proc/self/ns/pid").readlink())
_LIMITS = {trial.limit: 1 for trial in _EVERY if trial.limit}


def _ends_well(command: str) -> ExecResult:
    """End well at once, whatever the command tries."""
    if command.startswith("readlink"):
        return ExecResult(0, _OWN_NAMESPACE.encode(), b"")
    output = b"written all sleep 987\n" + b"NoNewPrivs:\t0\n"
    return ExecResult(0, output + b"\0" * (2 << 20), b"", wall_seconds=1, cpu_seconds=1)


def _open(limits: Mapping[str, object], end: Callable[[str], ExecResult] = _ends_well) -> Any:
    """Open sandboxes in which every command ends at once."""

    async def execute(command: str, **_: object) -> ExecResult:
        return end(command)

    @asynccontextmanager
    async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        yield cast("Sandbox", SimpleNamespace(exec=execute, description={"limits": limits}))

    return open_


def _find(findings: list[Finding], name: str) -> Finding:
    return next(finding for finding in findings if finding.name == name)


def test_a_machine_where_everything_is_missing_is_described_all_the_same(tmp_path: Path) -> None:
    findings = [*machine(tmp_path)]
    assert _find(findings, "kernel").state == "unknown"
    for name in ("user namespaces", "cgroups"):
        assert _find(findings, name).state == "gap"
        assert _find(findings, name).fix


def test_without_any_program_on_the_path_debootstrap_is_a_gap_with_a_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = _find([*programs()], "debootstrap")
    assert (found.state, "apt-get install" in found.fix) == ("gap", True)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("user/max_user_namespaces", "0"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ],
)
def test_what_forbids_user_namespaces_is_named_with_its_fix(
    tmp_path: Path, setting: str, value: str
) -> None:
    path = tmp_path / "proc/sys" / setting
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")
    found = _find([*machine(tmp_path)], "user namespaces")
    assert found.state == "gap"
    assert value in found.detail
    assert f"{setting.replace('/', '.')}=" in found.fix


def test_a_kernel_that_is_too_old_for_local_sandboxes_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "proc/sys/kernel/osrelease"
    path.parent.mkdir(parents=True)
    for release, state in (("5.10.0-28-amd64", "gap"), ("5.12.1", "note"), ("6.1.0-13", "note")):
        path.write_text(release)
        assert _find([*machine(tmp_path)], "kernel").state == state


def test_a_kernel_without_overlayfs_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/filesystems").write_text("nodev\ttmpfs\n\text4\n")
    assert _find([*machine(tmp_path)], "overlay").state == "gap"
    (tmp_path / "proc/filesystems").write_text("nodev\toverlay\n")
    assert _find([*machine(tmp_path)], "overlay").state == "ok"


def test_a_few_process_ids_are_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "proc/sys/kernel/pid_max"
    path.parent.mkdir(parents=True)
    for most, state in (("4096", "gap"), ("4194304", "ok")):
        path.write_text(most)
        assert _find([*machine(tmp_path)], "pid_max").state == state


def test_a_cache_that_cannot_be_made_is_a_gap_of_the_disk() -> None:
    assert disk(Path("/proc/nobody/cache")).state == "gap"


@pytest.mark.parametrize("trial", _EVERY, ids=lambda trial: trial.name)
def test_a_limit_that_does_not_hold_is_found_out(trial: Trial) -> None:
    (found,) = asyncio.run(try_limits("local", _open(_LIMITS), SMALL, [trial]))
    assert found.state == "gap"
    assert "fault of gymsuite" in found.fix


def test_processes_are_limited_where_only_the_shell_tells() -> None:
    def refuse(_: str) -> ExecResult:
        return ExecResult(2, b"", b"sh: 0: Cannot fork\n")

    (pids,) = [trial for trial in TRIALS if trial.name == "pids"]
    (found,) = asyncio.run(try_limits("local", _open(_LIMITS, refuse), SMALL, [pids]))
    assert (found.state, found.detail) == ("ok", "exit 2, refused")


def test_limits_that_the_provider_denies_are_listed_with_the_way_out_and_not_tried() -> None:
    denied = dict.fromkeys(_LIMITS)
    denied["network"] = cast("Any", "none")
    found = asyncio.run(try_limits("local", _open(denied), SMALL, TRIALS))
    memory, disk_bytes = _find(found, "memory"), _find(found, "disk")
    assert "not enforced" in memory.detail
    assert "Delegate=yes" in memory.fix
    assert "6.6" in disk_bytes.fix
