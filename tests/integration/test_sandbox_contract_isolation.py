"""What a sandbox must keep its commands from, whatever the provider."""

import platform
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite import ExecResult, Sandbox

from .conftest import InSandbox

PATIENCE = 30.0


def running(script: str) -> Callable[[Sandbox], Awaitable[ExecResult]]:
    """A body that runs a script and returns its result."""

    async def body(sandbox: Sandbox) -> ExecResult:
        return await sandbox.exec(script, timeout=PATIENCE)

    return body


def test_there_is_no_network_but_its_own_loopback(in_sandbox: InSandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        result = in_sandbox(running(f'python3 -c "{connect}"; tail -n +3 /proc/net/dev'))
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert b"ConnectionRefusedError" in result.stderr
    assert [line.split(b":")[0].strip() for line in result.stdout.splitlines()] == [b"lo"]


def test_a_server_within_the_sandbox_can_be_reached_there(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        serve = "python3 -m http.server 8123 --bind 127.0.0.1 --directory /workspace"
        await sandbox.exec(f"{serve} >/dev/null 2>&1 &", timeout=PATIENCE)
        url = "http://127.0.0.1:8123/plain.txt"
        fetch = f"import urllib.request as r; print(r.urlopen('{url}').read().decode(), end='')"
        retry = f'until python3 -c "{fetch}" 2>/dev/null; do sleep 0.1; done'
        return await sandbox.exec(retry, timeout=PATIENCE)

    assert in_sandbox(body).stdout == b"plain\n"


def test_the_environment_of_the_host_is_invisible(
    in_sandbox: InSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GYMSUITE_TEST_SECRET", "hunter2")
    result = in_sandbox(running("env; cat /proc/*/environ"))
    assert b"hunter2" not in result.stdout
    names = {line.split(b"=")[0] for line in result.stdout.replace(b"\0", b"\n").splitlines()}
    assert names <= {b"PATH", b"HOME", b"LANG", b"PWD", b"OLDPWD", b"SHLVL", b"_"}


def test_the_home_and_the_files_of_the_host_are_invisible(
    in_sandbox: InSandbox, tmp_path: Path
) -> None:
    with tempfile.NamedTemporaryFile(dir=Path.home(), prefix="gymsuite-test-") as secret:
        Path(secret.name).chmod(0o644)
        (tmp_path / "file").write_text("secret")
        script = f"cat {secret.name} {tmp_path}/file; ls -a {Path.home()} {Path(__file__).parent}"
        result = in_sandbox(running(script))
    assert b"secret" not in result.stdout
    assert Path(secret.name).name.encode() not in result.stdout
    assert b"conftest.py" not in result.stdout


def test_the_kernel_cannot_be_reconfigured(in_sandbox: InSandbox) -> None:
    result = in_sandbox(running("echo 1 > /proc/sys/vm/drop_caches; echo b > /proc/sysrq-trigger"))
    assert result.exit_code != 0
    assert result.stderr.count(b"cannot create") == 2


def test_the_passwords_of_the_host_cannot_be_read(in_sandbox: InSandbox) -> None:
    result = in_sandbox(running("cat /etc/shadow /proc/1/root/etc/shadow"))
    assert b"$" not in result.stdout, "every hash of a password has one"
    assert b"/proc/1/root/etc/shadow: Permission denied" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "unshare -U true",
        "unshare -m true",
        "unshare -n true",
        "mount -t tmpfs none /tmp",
        "umount /proc",
        "chroot / true",
        "mknod /tmp/disk b 8 0",
        "nsenter -t 1 -m true",
    ],
)
def test_no_new_namespaces_mounts_or_devices(in_sandbox: InSandbox, command: str) -> None:
    result = in_sandbox(running(command))
    assert result.exit_code not in (0, 127), result.output


PROBE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    print(ctypes.get_errno())
"""


# The newer ones have the same number everywhere.
DANGEROUS_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 467)
DANGEROUS = {
    "x86_64": {
        "mount": 165, "umount2": 166, "pivot_root": 155, "setns": 308, "ptrace": 101,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "keyctl": 250,
        "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298,
        "userfaultfd": 323, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175,
        "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304,
        "name_to_handle_at": 303, "syslog": 103, "reboot": 169, "swapon": 167, "swapoff": 168,
        "acct": 163, "quotactl": 179, "settimeofday": 164, "clock_settime": 227,
        "lookup_dcookie": 212, "nfsservctl": 180, "iopl": 172, "ioperm": 173, "chroot": 161,
    },
    "aarch64": {
        "mount": 40, "umount2": 39, "pivot_root": 41, "setns": 268, "ptrace": 117,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "keyctl": 219,
        "add_key": 217, "request_key": 218, "bpf": 280, "perf_event_open": 241,
        "userfaultfd": 282, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105,
        "finit_module": 273, "delete_module": 106, "open_by_handle_at": 265,
        "name_to_handle_at": 264, "syslog": 116, "reboot": 142, "swapon": 224, "swapoff": 225,
        "acct": 89, "quotactl": 60, "settimeofday": 170, "clock_settime": 112,
        "lookup_dcookie": 18, "nfsservctl": 42, "chroot": 51,
    },
}  # fmt: skip


def test_dangerous_system_calls_are_refused(in_sandbox: InSandbox) -> None:
    clone3 = 435
    numbers = [clone3, *DANGEROUS_EVERYWHERE, *DANGEROUS[platform.machine()].values()]

    async def body(sandbox: Sandbox) -> Any:
        command = ["python3", "-c", PROBE, *map(str, numbers)]
        return await sandbox.exec(command, timeout=PATIENCE)

    not_permitted, not_implemented = "1", "38"
    answers = in_sandbox(body).stdout.decode().split()
    assert answers == [not_implemented, *[not_permitted] * (len(numbers) - 1)]


def test_addresses_stay_random_and_an_ordinary_personality_is_allowed(
    in_sandbox: InSandbox,
) -> None:
    script = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "for flags in (0xffffffff, 0, 0x0040000, 0x0400000, 0x0440000):\n"
        "    print(libc.personality(ctypes.c_ulong(flags)) >= 0)"
    )

    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec(["python3", "-c", script], timeout=PATIENCE)

    assert in_sandbox(body).stdout.split() == [b"True", b"True", b"False", b"False", b"False"]


NAMESPACE_PROBE = """
import ctypes, os, platform, signal
libc = ctypes.CDLL(None, use_errno=True)
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
for flag in (0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000):
    for call in (lambda: libc.unshare(flag), lambda: libc.syscall(clone, flag | 17, 0, 0, 0, 0)):
        ctypes.set_errno(0)
        if call() == 0:
            os._exit(9)
        print(ctypes.get_errno())
"""


def test_the_filter_itself_refuses_every_kind_of_namespace(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec(["python3", "-c", NAMESPACE_PROBE], timeout=PATIENCE)

    not_permitted = "1"
    result = in_sandbox(body)
    assert result.stdout.decode().split() == [not_permitted] * 14, result.output


def test_commands_have_no_capabilities_and_cannot_gain_any(in_sandbox: InSandbox) -> None:
    result = in_sandbox(
        running("grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status")
    )
    fields = dict(line.split(":\t") for line in result.stdout.decode().splitlines())
    assert {name: int(value, 16) for name, value in fields.items()} == {
        "CapPrm": 0,
        "CapEff": 0,
        "CapBnd": 0,
        "CapAmb": 0,
        "NoNewPrivs": 1,
        "Seccomp": 2,
    }


def test_threads_and_processes_work_under_the_filter(in_sandbox: InSandbox) -> None:
    script = (
        "import threading, multiprocessing as m;"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join();"
        " p = m.Process(target=print, args=('process',)); p.start(); p.join()"
    )
    assert in_sandbox(running(f'python3 -c "{script}"')).stdout == b"thread\nprocess\n"


def test_the_exec_server_hides_its_channel_and_its_memory(in_sandbox: InSandbox) -> None:
    secrets = "cat /proc/1/mem /proc/1/maps /proc/1/environ"
    result = in_sandbox(running(f"{secrets}; readlink /proc/1/fd/* /proc/$PPID/fd/*"))
    assert result.stdout == b""
    assert result.stderr.count(b"Permission denied") == 3


def test_commands_inherit_no_descriptor_of_the_exec_server(in_sandbox: InSandbox) -> None:
    result = in_sandbox(running("ls /proc/self/fd"))
    # stdin, stdout, stderr, and the directory that ls reads.
    assert result.stdout.split() == [b"0", b"1", b"2", b"3"]


def test_pids_are_limited_to_what_the_description_says(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        limits = sandbox.description["limits"]
        script = "i=0; while [ $i -lt 700 ]; do sleep 100 & i=$((i+1)); done; wait"
        result = await sandbox.exec(script, timeout=10)
        return limits, result

    limits, result = in_sandbox(body)
    assert limits["pids"] == 512
    assert limits["network"] == "none"
    assert b"fork" in result.stderr
