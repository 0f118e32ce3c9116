"""Where cgroups are found and what is written there, over directories like a machine's."""

import os
import subprocess
from pathlib import Path

import pytest

from gymsuite.sandbox.cgroups import Cgroups, Setting, Usage
from gymsuite.sandbox.hierarchies import find, limit_sockets
from gymsuite.sandbox.owner import start_time


def machine(root: Path, mounts: list[tuple[str, str, str, str]], memberships: list[str]) -> Path:
    """Write what /proc/self says; mounts are a type, a root, a place below `root`, and options."""
    proc = root / "proc"
    proc.mkdir()
    lines = [
        f"{number} 1 0:{number} {top} {root / place} rw,relatime - {kind} {kind} {options}"
        for number, (kind, top, place, options) in enumerate(mounts)
    ]
    (proc / "mountinfo").write_text("\n".join(["20 1 8:1 / / rw - ext4 /dev/vda rw", *lines]))
    (proc / "cgroup").write_text("\n".join(memberships) + "\n")
    return proc


def make_v2(path: Path, *, offered: str, enabled: str = "") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.controllers").write_text(f"{offered}\n")
    (path / "cgroup.subtree_control").write_text(f"{enabled}\n")
    (path / "cgroup.procs").touch()
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A machine with version 1, and processor time limited and counted in one hierarchy."""
    for name in ("memory/job", "pids", "cpu,cpuacct"):
        (tmp_path / name).mkdir(parents=True)
    for limit in ("memsw", "kmem.tcp"):
        (tmp_path / f"memory/job/memory.{limit}.limit_in_bytes").touch()
    return machine(
        tmp_path,
        [
            ("cgroup", "/", "memory", "rw,memory"),
            ("cgroup", "/", "pids", "rw,pids"),
            ("cgroup", "/", "cpu,cpuacct", "rw,cpu,cpuacct"),
        ],
        ["4:memory:/job", "3:pids:/", "2:cpu,cpuacct:/", "0::/"],
    )


def test_version_1_has_a_directory_for_each_hierarchy(first: Path) -> None:
    root = first.parent
    found = find(first)
    assert found == Cgroups(
        version=1,
        parents=(root / "memory/job", root / "pids", root / "cpu,cpuacct"),
        controllers={"memory": 0, "pids": 1, "cpu": 2, "cpuacct": 2},
        swap=True,
        sockets=True,
    )
    assert found.settings(cpus=1.5, memory_bytes=1 << 20, pids=7) == (
        Setting(2, "cpu.cfs_period_us", "100000"),
        Setting(2, "cpu.cfs_quota_us", "150000"),
        Setting(0, "memory.limit_in_bytes", "1048576"),
        Setting(0, "memory.memsw.limit_in_bytes", "1048576"),
        Setting(0, "memory.kmem.tcp.limit_in_bytes", "131072"),
        Setting(1, "pids.max", "7"),
    )
    assert found.events == {"memory": (0, "memory.oom_control"), "pids": (1, "pids.events")}


def test_sockets_of_another_process_are_limited_where_memory_does_not_count_them(
    first: Path,
) -> None:
    limit = first.parent / "memory/job/memory.kmem.tcp.limit_in_bytes"
    (first.parent / "self").symlink_to(first)
    (first.parent / "7").symlink_to(first)
    limit_sockets(7, 1 << 20, proc=first.parent)
    assert limit.read_text() == "131072"
    limit_sockets(8, 1 << 30, proc=first.parent)
    assert limit.read_text() == "131072", "there is no such process"


def test_a_container_finds_its_own_part_of_version_1(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    mounts = [("cgroup", "/docker/abc", "memory", "rw,memory")]
    proc = machine(tmp_path, mounts, ["4:memory:/docker/abc"])
    assert find(proc).parents == (tmp_path / "memory",)
    (proc / "cgroup").write_text("4:memory:/docker/abc/inner\n")
    (tmp_path / "memory/inner").mkdir()
    assert find(proc).parents == (tmp_path / "memory/inner",)


def test_version_2_takes_the_nearest_cgroup_that_can_be_divided(tmp_path: Path) -> None:
    top = make_v2(tmp_path / "unified", offered="cpu memory pids io", enabled="cpu memory pids")
    user = make_v2(top / "user.slice", offered="cpu memory pids", enabled="memory pids cpu")
    # The kernel refuses to divide a cgroup in which processes live, whatever is written.
    own = make_v2(user / "session.scope", offered="memory pids")
    (own / "cgroup.subtree_control").unlink()
    (own / "cgroup.subtree_control").mkdir()
    mounts = [("cgroup2", "/", "unified", "rw,nsdelegate")]
    proc = machine(tmp_path, mounts, ["0::/user.slice/session.scope"])
    found = find(proc)
    assert found.version == 2
    assert found.parents == (user,)
    limits = Cgroups(2, (user,), {"memory": 0, "pids": 0, "cpu": 0, "cpuacct": 0}, swap=True)
    assert limits.settings(cpus=0.001, memory_bytes=4096, pids=3) == (
        Setting(0, "cpu.max", "1000 100000"),
        Setting(0, "memory.max", "4096"),
        Setting(0, "memory.swap.max", "0"),
        Setting(0, "pids.max", "3"),
    )
    assert limits.events == {"memory": (0, "memory.events"), "pids": (0, "pids.events")}


def test_version_2_is_asked_to_limit_what_it_offers(tmp_path: Path) -> None:
    top = make_v2(tmp_path / "unified", offered="memory")
    proc = machine(tmp_path, [("cgroup2", "/", "unified", "rw")], ["0::/"])
    assert find(proc) == Cgroups(), "these directories do not do what they are asked for"
    assert (top / "cgroup.subtree_control").read_text() == "+memory"


def test_a_hybrid_machine_uses_version_1_where_version_2_has_no_controllers(first: Path) -> None:
    make_v2(first.parent / "unified", offered="hugetlb")
    with (first / "mountinfo").open("a") as file:
        file.write(f"\n30 1 0:30 / {first.parent / 'unified'} rw - cgroup2 cgroup2 rw\n")
    assert find(first).version == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any directory")
def test_what_may_not_be_written_is_not_used(first: Path) -> None:
    for path in ("memory/job", "pids", "cpu,cpuacct"):
        (first.parent / path).chmod(0o555)
    assert find(first) == Cgroups()


def test_without_cgroups_nothing_is_limited_and_nothing_counted(tmp_path: Path) -> None:
    for proc in (machine(tmp_path, [], []), tmp_path / "no-proc"):
        found = find(proc)
        assert found == Cgroups()
        assert found.settings(cpus=1, memory_bytes=1 << 20, pids=7) == ()
        assert found.events == {}
        assert found.names() == ()
        assert found.usage((), 0) == Usage(None, None, None)


def test_use_is_read_in_either_version(tmp_path: Path) -> None:
    group = tmp_path / "7"
    group.mkdir()
    everything = {"memory": 0, "pids": 0, "cpu": 0, "cpuacct": 0}
    first, second = (Cgroups(version, (tmp_path,), everything) for version in (1, 2))
    assert first.usage((tmp_path,), 7) == Usage(None, None, None)
    (group / "cpuacct.usage").write_text("1500000000\n")
    (group / "memory.max_usage_in_bytes").write_text("4096\n")
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert first.usage((tmp_path,), 7) == Usage(1.5, 4096, 3)
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (group / "memory.peak").write_text("8192\n")
    (group / "memory.events").write_text("low 0\noom 9\noom_kill 2\n")
    assert second.usage((tmp_path,), 7) == Usage(2.5, 8192, 2)


def test_directories_of_processes_that_ended_are_removed_and_no_others(tmp_path: Path) -> None:
    cgroups = Cgroups(1, (tmp_path,), {"memory": 0})
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    (own,) = cgroups.names()
    assert cgroups.names() != (own,), "each keeper has its own"
    again = f"gymsuite-{namespace}-{os.getpid()}-{start_time(os.getpid())}1-x"
    stale = [f"gymsuite-{namespace}-{process.pid}-12345-x", again]
    kept = [own.name, f"gymsuite-1-{process.pid}-12345-x", "gymsuite-x", "other"]
    for name in (*stale, *kept):
        (tmp_path / name / "0").mkdir(parents=True)
    found = cgroups.remove_stale(dry_run=True)
    assert sorted(found) == sorted(str(tmp_path / name) for name in stale)
    assert cgroups.remove_stale() == found
    assert cgroups.remove_stale() == ()
    assert {path.name for path in tmp_path.iterdir()} == set(kept)
    cgroups.remove((own,))
    assert not own.exists()
