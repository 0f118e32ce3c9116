"""What a sandbox keeps its commands from: the machine, its network, its kernel, other sandboxes."""

import os
import socket
import tempfile
from contextlib import closing
from pathlib import Path

from gymsuite.sandbox.conformance.calls import BY_MACHINE, CLONE3, EVERYWHERE
from gymsuite.sandbox.conformance.case import (
    Case,
    NotKept,
    NotOffered,
    done,
    expect,
    inside,
    over,
    python,
    same,
    shell,
)
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

GROUP = "isolation"
_SHELLS_OWN = {"HOME", "LANG", "PATH", "PWD", "OLDPWD", "SHLVL", "TERM", "USER", "LOGNAME", "_"}
_FAMILIES = """
import socket
for family in range(1, 46):
    for kind in (1, 2, 3):
        try:
            socket.socket(family, kind).close()
            print(family)
            break
        except OSError:
            pass
"""
_PROBE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    print(ctypes.get_errno())
"""
_PERSONALITY = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0xffffffff, 0, 0x0040000, 0x0400000, 0x0440000):
    print(libc.personality(ctypes.c_ulong(flags)) >= 0)
"""
_NAMESPACES = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
for flag in (0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000):
    for call in (lambda: libc.unshare(flag), lambda: libc.syscall(clone, flag | 17, 0, 0, 0, 0)):
        ctypes.set_errno(0)
        if call() == 0:
            os._exit(9)
        print(ctypes.get_errno())
"""
_THREADS = """
import threading, multiprocessing
thread = threading.Thread(target=print, args=("thread",))
thread.start(); thread.join()
process = multiprocessing.get_context("fork").Process(target=print, args=("process",), daemon=True)
process.start(); process.join()
"""
_NOT_PERMITTED, _NOT_IMPLEMENTED = "1", "38"


async def there_is_no_network_but_its_own_loopback(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        result = await shell(sandbox, f'python3 -c "{connect}"; tail -n +3 /proc/net/dev')
        _nobody_came(listener)
    expect(b"ConnectionRefusedError" in result.stderr, result)
    same([line.split(b":")[0].strip() for line in result.stdout.splitlines()], [b"lo"])


async def no_abstract_socket_of_the_machine_answers(sandbox: Sandbox) -> None:
    name = f"gymsuite-conformance-{os.getpid()}"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind("\0" + name)
        listener.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + '{name}')"
        result = await python(sandbox, connect)
        _nobody_came(listener)
    expect(b"ConnectionRefusedError" in result.stderr, result)


def _nobody_came(listener: socket.socket) -> None:
    listener.setblocking(False)
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return
    connection.close()
    raise NotKept("it reached a socket of this machine")


async def sockets_reach_no_further_than_the_sandbox(sandbox: Sandbox) -> None:
    # A virtual machine's own channel to its host, AF_VSOCK, belongs to no network namespace.
    unix, inet, inet6, netlink = "1", "2", "10", "16"
    found = set((await python(sandbox, _FAMILIES)).stdout.decode().split())
    expect({unix, inet} <= found <= {unix, inet, inet6, netlink}, f"address families {found}")


async def a_server_within_the_sandbox_can_be_reached_there(sandbox: Sandbox) -> None:
    serve = "python3 -m http.server 8123 --bind 127.0.0.1 --directory /workspace"
    await done(sandbox, f"{serve} >/dev/null 2>&1 &")
    url = "http://127.0.0.1:8123/plain.txt"
    fetch = f"import urllib.request as r; print(r.urlopen('{url}').read().decode(), end='')"
    same(
        await done(sandbox, f'until python3 -c "{fetch}" 2>/dev/null; do sleep 0.1; done'),
        b"plain\n",
    )


async def the_environment_of_this_process_is_invisible(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "env; cat /proc/*/environ")
    entries = result.stdout.replace(b"\0", b"\n").splitlines()
    ours = {os.fsencode(f"{name}={value}") for name, value in os.environ.items()
            if name not in _SHELLS_OWN}  # fmt: skip
    same([entry.partition(b"=")[0] for entry in entries if entry in ours], [])


async def the_home_and_the_files_of_this_machine_are_invisible(sandbox: Sandbox) -> None:
    home, here = Path.home(), Path(__file__).parent
    with (
        tempfile.NamedTemporaryFile(dir=home, prefix="gymsuite-conformance-") as at_home,
        tempfile.NamedTemporaryFile() as elsewhere,
    ):
        for file in (at_home, elsewhere):
            file.write(b"secret")
            file.flush()
            os.fchmod(file.fileno(), 0o644)
        names = f"{at_home.name} {elsewhere.name}"
        result = await shell(sandbox, f"cat {names}; ls -a {home} {here}")
    for traitor in (b"secret", os.fsencode(Path(at_home.name).name), b"isolation.py"):
        expect(traitor not in result.stdout, result)


async def the_kernel_cannot_be_reconfigured(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "echo 1 > /proc/sys/vm/drop_caches; echo b > /proc/sysrq-trigger")
    expect(result.exit_code != 0 and result.stderr.count(b"cannot create") == 2, result)


async def the_passwords_of_this_machine_cannot_be_read(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "cat /etc/shadow /proc/1/root/etc/shadow")
    expect(b"$" not in result.stdout, "there is the hash of a password")
    expect(b"/proc/1/root/etc/shadow: Permission denied" in result.stderr, result)


async def there_are_no_new_namespaces_mounts_or_devices(sandbox: Sandbox) -> None:
    for command in (
        "unshare -U true",
        "unshare -m true",
        "unshare -n true",
        "mount -t tmpfs none /tmp",
        "umount /proc",
        "chroot / true",
        "mknod /tmp/disk b 8 0",
        "nsenter -t 1 -m true",
    ):
        result = await shell(sandbox, command)
        expect(result.exit_code not in (0, 127), (command, result))


async def dangerous_system_calls_are_refused(sandbox: Sandbox) -> None:
    machine = (await done(sandbox, "uname -m")).decode().strip()
    if machine not in BY_MACHINE:
        raise NotOffered(f"the numbers of system calls on {machine} are not known here")
    calls = (CLONE3, *EVERYWHERE, *BY_MACHINE[machine].values())
    answers = (await python(sandbox, _PROBE, *map(str, calls))).stdout.decode().split()
    promised = [_NOT_IMPLEMENTED] + [_NOT_PERMITTED] * (len(calls) - 1)
    wrong = [
        (call, said)
        for call, said, wish in zip(calls, answers, promised, strict=False)
        if said != wish
    ]
    same((len(answers), wrong), (len(calls), []))


async def addresses_stay_random_and_an_ordinary_personality_is_allowed(sandbox: Sandbox) -> None:
    found = (await python(sandbox, _PERSONALITY)).stdout.split()
    same(found, [b"True", b"True", b"False", b"False", b"False"])


async def the_filter_itself_refuses_every_kind_of_namespace(sandbox: Sandbox) -> None:
    result = await python(sandbox, _NAMESPACES)
    same(result.stdout.decode().split(), [_NOT_PERMITTED] * 14)


async def commands_have_no_capabilities_and_cannot_gain_any(sandbox: Sandbox) -> None:
    script = "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status"
    lines = (await done(sandbox, script)).decode().splitlines()
    found = {name: int(value, 16) for name, _, value in (line.partition(":\t") for line in lines)}
    none = dict.fromkeys(("CapPrm", "CapEff", "CapBnd", "CapAmb"), 0)
    same(found, {**none, "NoNewPrivs": 1, "Seccomp": 2})


async def threads_and_processes_work_under_the_filter(sandbox: Sandbox) -> None:
    same((await python(sandbox, _THREADS)).stdout, b"thread\nprocess\n")


async def the_first_process_hides_its_channel_and_its_memory(sandbox: Sandbox) -> None:
    secrets = "cat /proc/1/mem /proc/1/maps /proc/1/environ"
    result = await shell(sandbox, f"{secrets}; readlink /proc/1/fd/* /proc/$PPID/fd/*")
    same((result.stdout, result.stderr.count(b"Permission denied")), (b"", 3))


async def commands_inherit_no_descriptor(sandbox: Sandbox) -> None:
    # stdin, stdout, stderr, and the directory that ls reads.
    same((await done(sandbox, "ls /proc/self/fd")).split(), [b"0", b"1", b"2", b"3"])


async def two_sandboxes_share_nothing(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    async with open_sandbox(spec) as first, open_sandbox(spec) as second:
        hide = "echo changed > plain.txt; echo > /tmp/mine; echo > /dev/shm/mine; sleep 4381 &"
        await done(first, hide)
        seen = "cat plain.txt; ls /tmp/mine /dev/shm/mine; cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
        result = await shell(second, seen)
        expect(result.stdout.startswith(b"plain\n"), result)
        expect(b"mine\n" not in result.stdout and b"4381" not in result.stdout, result)


CASES: tuple[Case, ...] = (
    *(
        inside(GROUP, body)
        for body in (
            no_abstract_socket_of_the_machine_answers,
            sockets_reach_no_further_than_the_sandbox,
            a_server_within_the_sandbox_can_be_reached_there,
            the_environment_of_this_process_is_invisible,
            the_home_and_the_files_of_this_machine_are_invisible,
            the_kernel_cannot_be_reconfigured,
            the_passwords_of_this_machine_cannot_be_read,
            there_are_no_new_namespaces_mounts_or_devices,
            dangerous_system_calls_are_refused,
            addresses_stay_random_and_an_ordinary_personality_is_allowed,
            the_filter_itself_refuses_every_kind_of_namespace,
            commands_have_no_capabilities_and_cannot_gain_any,
            threads_and_processes_work_under_the_filter,
            the_first_process_hides_its_channel_and_its_memory,
            commands_inherit_no_descriptor,
        )
    ),
    inside(GROUP, there_is_no_network_but_its_own_loopback, needs=("network",)),
    over(GROUP, two_sandboxes_share_nothing),
)
