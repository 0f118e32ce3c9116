from pathlib import Path

import pytest

from gymsuite.sandbox.capacity import Machine

MIB = 1 << 20


def write(root: Path, files: dict[str, str]) -> Machine:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Machine.this(root)


PROC = {
    "proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  1048576 kB\nHugePages_Total: 0\n",
    "proc/stat": "cpu  1 2 3 400 50 6 7 8 0 0\ncpu0 1 2 3 4\n",
}


def test_what_the_kernel_says_of_the_moment_is_read(tmp_path: Path) -> None:
    machine = write(tmp_path, PROC)
    assert machine.available_bytes() == 1024 * MIB
    assert machine.idle_seconds() == pytest.approx(4.5)


def test_in_a_container_the_machine_is_what_its_group_leaves_of_it(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/unit.slice"
    machine = write(
        tmp_path,
        {
            **PROC,
            "proc/self/cgroup": "0::/unit.slice/inner\n",
            f"{group}/inner/memory.max": "max\n",
            f"{group}/memory.max": f"{512 * MIB}\n",
            f"{group}/memory.current": f"{300 * MIB}\n",
            f"{group}/memory.stat": f"anon 1\ninactive_file {100 * MIB}\n",
            f"{group}/cpu.max": "50000 100000\n",
        },
    )
    assert machine.memory_bytes == 512 * MIB
    assert machine.available_bytes() == 312 * MIB
    assert machine.processors == 0.5


def test_groups_of_version_1_say_the_same_in_other_words(tmp_path: Path) -> None:
    memory, cpu = "sys/fs/cgroup/memory/docker/x", "sys/fs/cgroup/cpu/docker/x"
    machine = write(
        tmp_path,
        {
            **PROC,
            "proc/self/cgroup": "4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n1:pids:/\n0::/\n",
            f"{memory}/memory.limit_in_bytes": f"{256 * MIB}\n",
            f"{memory}/memory.usage_in_bytes": f"{200 * MIB}\n",
            f"{memory}/memory.stat": f"cache 1\ntotal_inactive_file {50 * MIB}\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            f"{cpu}/cpu.cfs_quota_us": "25000\n",
            f"{cpu}/cpu.cfs_period_us": "100000\n",
        },
    )
    assert machine.memory_bytes == 256 * MIB
    assert machine.available_bytes() == 106 * MIB
    assert machine.processors == 0.25


def test_a_kernel_that_says_little_is_no_obstacle(tmp_path: Path) -> None:
    machine = write(
        tmp_path, {"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.max": "max 1"}
    )
    assert machine.available_bytes() == machine.memory_bytes
    assert machine.idle_seconds() == 0.0
    assert machine.processors >= 1
