"""Attacks on the kernel and on the machine behind it: each a way out that others left open."""

from gymsuite.sandbox.conformance import isolation
from gymsuite.sandbox.conformance.abuse.attack import Answer, Attack, inside, python, shell
from gymsuite.sandbox.conformance.case import PATIENCE, expect, same
from gymsuite.sandbox.conformance.files import refused
from gymsuite.sandbox.protocol import Sandbox

KIND = "kernel"
_QUIET = "exec 2> /dev/null; "
_SETTINGS = (
    _QUIET + "for f in kernel/core_pattern kernel/hostname kernel/modprobe kernel/panic"
    " kernel/sysrq kernel/ns_last_pid kernel/msgmax vm/overcommit_memory vm/drop_caches"
    " fs/file-max net/ipv4/ip_forward user/max_user_namespaces fs/binfmt_misc/register;"
    " do (cat /proc/sys/$f | head -c 100 > /tmp/v; cat /tmp/v > /proc/sys/$f && echo BROKEN"
    " $f); done;"
    " for f in /proc/sysrq-trigger /proc/acpi/wakeup /proc/mtrr; do (echo h > $f && echo BROKEN"
    " $f); done; exit 0"
)
_SECRETS = (
    _QUIET + "for f in /proc/kcore /proc/kmsg /dev/mem /dev/kmem /dev/port /dev/kmsg /proc/keys"
    " /proc/timer_list /proc/sched_debug /sys/firmware/dmi/tables/DMI; do"
    " (head -c 1 $f | grep -q . && echo BROKEN $f); done;"
    " grep -v '^0* ' /proc/kallsyms | head -1 | grep -q . && echo BROKEN kallsyms;"
    " dmesg | grep -q . && echo BROKEN dmesg; exit 0"
)
_SYS = _QUIET + "find /sys -maxdepth 4 -type f -writable | head -3 | sed 's/^/BROKEN /'; exit 0"
_CGROUPS = (
    _QUIET + "for f in $(find /sys/fs/cgroup -maxdepth 3 -name cgroup.procs -o -maxdepth 3 -name"
    " release_agent -o -maxdepth 3 -name 'memory.*limit_in_bytes' -o -maxdepth 3 -name '*.max'); do"
    " (echo 0 > $f && echo BROKEN $f); done; mkdir /sys/fs/cgroup/x && echo BROKEN mkdir; exit 0"
)
_FIRST = (
    _QUIET + "for p in 1 $PPID; do for f in environ maps mem auxv; do"
    " (head -c 1 /proc/$p/$f | grep -q . && echo BROKEN $p/$f); done;"
    " for f in root cwd exe; do readlink /proc/$p/$f | sed 's/^/BROKEN /'; done;"
    " for f in /proc/$p/fd/*; do (echo x > $f && echo BROKEN $f); done; done; exit 0"
)
_MOUNTS = (
    _QUIET + "mount -t tmpfs x /tmp && echo BROKEN mount; mount --bind / /tmp && echo BROKEN bind;"
    " mount -o remount,rw /usr && echo BROKEN remount; umount /proc && echo BROKEN umount;"
    " umount -l /dev && echo BROKEN umount -l; pivot_root . . && echo BROKEN pivot_root;"
    " chroot / true && echo BROKEN chroot; for n in U m n p i u C; do"
    " unshare -$n true && echo BROKEN $n; nsenter -t 1 -$n true && echo BROKEN nsenter $n; done;"
    " exit 0"
)
_DEVICES = (
    _QUIET + "mknod /tmp/disk b 8 0 && echo BROKEN b; mknod /tmp/mem c 1 1 && echo BROKEN c;"
    " find /dev -type b | sed 's/^/BROKEN /'; for d in /dev/kvm /dev/fuse /dev/net/tun"
    " /dev/loop-control /dev/vda /dev/sda /dev/vhost-net; do (true < $d) && echo BROKEN $d; done;"
    " exit 0"
)
_PROGRAM = (
    _QUIET + "for f in /dev/.exec /proc/1/exe /proc/$PPID/exe; do (echo x >> $f && echo BROKEN $f);"
    " (rm $f && echo BROKEN rm $f); (mv $f /tmp && echo BROKEN mv $f); done; exit 0"
)
_SETUID = (
    "cp /bin/cat /tmp/cat; chmod 6755 /tmp/cat; /tmp/cat /proc/self/status | grep NoNewPrivs;"
    " /tmp/cat /etc/shadow | grep -q '[$]' && echo BROKEN; exit 0"
)
_TERMINAL = """
import fcntl, os, termios
for call in (
    lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"),
    lambda: fcntl.ioctl(0, 0x541C, b"\\x03"),
    lambda: os.open("/dev/tty", os.O_RDWR),
    lambda: os.open("/dev/console", os.O_RDWR),
    lambda: os.open("/dev/tty1", os.O_RDWR),
):
    try:
        call()
        print("BROKEN")
    except OSError:
        pass
"""
_NAMES = """
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
for name, call in (
    ("sethostname", lambda: libc.sethostname(b"evil", 4)),
    ("setdomainname", lambda: libc.setdomainname(b"evil", 4)),
    ("adjtimex", lambda: libc.adjtimex((ctypes.c_long * 64)(0x4000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))),
    ("stime", lambda: libc.settimeofday((ctypes.c_long * 2)(1, 1), None)),
):
    if call() == 0:
        print("BROKEN", name)
try:
    time.clock_settime(time.CLOCK_REALTIME, 1.0)
    print("BROKEN clock")
except OSError:
    pass
"""
_SOCKETS = """
import socket
for name, words in (
    ("raw", (socket.AF_INET, socket.SOCK_RAW, 1)),
    ("packet", (17, socket.SOCK_RAW, 0)),
    ("vsock", (40, socket.SOCK_STREAM, 0)),
    ("alg", (38, socket.SOCK_SEQPACKET, 0)),
    ("bluetooth", (31, socket.SOCK_RAW, 1)),
    ("netlink audit", (16, socket.SOCK_RAW, 9)),
):
    try:
        found = socket.socket(*words)
    except OSError:
        continue
    if name != "netlink audit":
        print("BROKEN", name)
netlink = socket.socket(16, socket.SOCK_RAW, 0)
message = (32).to_bytes(4, "little") + (16).to_bytes(2, "little") + (0x605).to_bytes(2, "little")
netlink.send(message + bytes(8) + bytes(16))
answer = netlink.recv(4096)
if int.from_bytes(answer[16:20], "little", signed=True) >= 0:
    print("BROKEN a new interface")
"""
_SIBLING = """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
child = subprocess.Popen(["sleep", "1000"])
for name, call in (
    ("attach", lambda: libc.ptrace(16, child.pid, 0, 0)),
    ("seize", lambda: libc.ptrace(0x4206, child.pid, 0, 0)),
    ("traceme", lambda: libc.ptrace(0, 0, 0, 0)),
    ("parent", lambda: libc.ptrace(16, os.getppid(), 0, 0)),
):
    if call() != -1:
        print("BROKEN", name)
child.kill()
"""
_WHITEOUTS = """
import os
for path in ("one", "tree/deep/new"):
    try:
        os.mknod(path, 0o20000, 0)
    except OSError:
        pass
for name in ("user.overlay.opaque", "user.overlay.redirect"):
    try:
        os.setxattr("tree", name, b"y")
    except OSError:
        pass
for name in ("trusted.overlay.opaque", "trusted.overlay.redirect", "security.capability"):
    try:
        os.setxattr(".", name, b"y")
        print("BROKEN", name)
    except OSError:
        pass
"""

_AS_THE_SERVER = (
    _QUIET + "for words in '' 'serve 0' keeper 'keeper 0 0' 'join /dev/.channel serve 0'"
    " 'join /proc/1/fd/0 serve 0'; do timeout 0.3 /dev/.exec $words < /dev/null | head -c 100"
    " > /dev/null; done; exit 0"
)
_CHANNEL = """
import glob, socket
for path in ["/dev/.channel", *glob.glob("/run/*.sock"), *glob.glob("/dev/*.sock")]:
    try:
        channel = socket.socket(socket.AF_UNIX)
        channel.connect(path)
    except OSError:
        continue
    try:
        channel.settimeout(0.5)
        channel.sendall(bytes(128))
        if channel.recv(100):
            print("BROKEN", path)
    except OSError:
        pass
"""

_SHARED = """
import ctypes, platform, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
setup, fanotify, seccomp = {"x86_64": (206, 300, 317), "aarch64": (0, 262, 277)}[platform.machine()]
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.c_char_p)]
program = Program(1, struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
given = ctypes.byref(program)
end = socket.socket(socket.AF_INET)
file = end.fileno()
end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
for name, call in (
    ("asynchronous I/O", lambda: libc.syscall(setup, 1, ctypes.byref(ctypes.c_ulong(0)))),
    ("fanotify", lambda: libc.syscall(fanotify, 0x200, 0)),
    ("a socket's program", lambda: libc.setsockopt(file, 1, 26, given, ctypes.sizeof(program))),
    ("a group's program", lambda: libc.setsockopt(file, 1, 51, given, ctypes.sizeof(program))),
    ("a filter", lambda: libc.prctl(22, 2, given)),
    ("a filter by its own call", lambda: libc.syscall(seccomp, 1, 0, given)),
):
    if call() >= 0:
        print("BROKEN", name)
for protocol in (33, 115, 132, 136, 256):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(socket.AF_INET, kind, protocol)
            print("BROKEN protocol", protocol)
        except OSError:
            pass
"""


async def _settings_of_the_writer(sandbox: Sandbox) -> None:
    settings = "/proc/1/oom_score_adj /proc/1/comm /proc/1/timerslack_ns"
    before = await sandbox.exec(f"cat {settings}", timeout=PATIENCE)
    for name in ("oom_score_adj", "comm", "timerslack_ns"):
        await sandbox.exec(f"ln -sf /proc/self/{name} report", timeout=PATIENCE)
        await refused(sandbox.write("report", b"1000"))
        await refused(sandbox.write(f"/proc/1/{name}", b"1000"))
    after = await sandbox.exec(f"cat {settings}", timeout=PATIENCE)
    same(after.stdout, before.stdout)


async def _whiteouts(sandbox: Sandbox) -> None:
    Answer().check(await sandbox.exec(["python3", "-c", _WHITEOUTS], timeout=PATIENCE))
    changes = await sandbox.changes("/workspace")
    same(changes.changed, ())
    expect(set(changes.omitted) <= {"/workspace/one", "/workspace/tree/deep/new"}, changes)


ATTACKS = (
    Attack(KIND, "writes to /proc/sys, /proc/sysrq-trigger and their like", "each refused",
           shell(_SETTINGS)),
    Attack(KIND, "reads kcore, kmsg, kallsyms, keys, firmware and memory",
           "each refused, or empty", shell(_SECRETS)),
    Attack(KIND, "writes to /sys", "each refused, or absent", shell(_SYS)),
    Attack(KIND, "leaves its cgroup, or writes to release_agent", "each refused, or absent",
           shell(_CGROUPS)),
    Attack(KIND, "mounts, remounts, unmounts, enters or leaves namespaces", "EPERM",
           shell(_MOUNTS)),
    Attack(KIND, "makes devices, or opens those of the machine", "EPERM, or absent",
           shell(_DEVICES)),
    Attack(KIND, "looks into the first process and its parent, and writes to their descriptors",
           "each refused", shell(_FIRST)),
    Attack(KIND, "overwrites, removes or moves the exec server", "each refused",
           shell(_PROGRAM)),
    Attack(KIND, "has the exec server write to its own settings, by a link to them",
           "each refused", inside(_settings_of_the_writer)),
    Attack(KIND, "runs the exec server's own program, in all its ways", "nothing",
           shell(_AS_THE_SERVER)),
    Attack(KIND, "connects to the socket that the exec server came by", "refused, or unheard",
           python(_CHANNEL)),
    Attack(KIND, "traces a child, its parent, itself", "EPERM", python(_SIBLING)),
    Attack(KIND, "runs a setuid program", "no new privileges",
           shell(_SETUID, Answer((0,), (), b"NoNewPrivs:\t1"))),
    Attack(KIND, "types into a terminal (TIOCSTI)", "there is none", python(_TERMINAL)),
    Attack(KIND, "sets the clock or the host's name", "EPERM", python(_NAMES)),
    Attack(KIND, "opens raw, packet, vsock, alg sockets; makes an interface", "each refused",
           python(_SOCKETS)),
    Attack(KIND, "makes whiteouts and marks of an overlay", "refused, or without effect",
           inside(_whiteouts), differs={"docker": "whiteouts are devices, as nothing is stacked"},
           alone=True),
    Attack(KIND, "asks for io_uring, bpf, perf, userfaultfd, keys, kexec, modules, the new mounts"
           " and clone3", "EPERM; ENOSYS for clone3",
           inside(isolation.dangerous_system_calls_are_refused)),
    Attack(KIND, "asks for what a whole machine shares: aio, fanotify, compiled filters, protocols",
           "each refused", python(_SHARED)),
    Attack(KIND, "asks for a namespace of each kind, by unshare and by clone", "EPERM",
           inside(isolation.the_filter_itself_refuses_every_kind_of_namespace)),
    Attack(KIND, "connects to the loopback of the machine", "refused",
           inside(isolation.there_is_no_network_but_its_own_loopback), ("network",)),
    Attack(KIND, "connects to an abstract socket of the machine", "refused",
           inside(isolation.no_abstract_socket_of_the_machine_answers)),
    Attack(KIND, "crashes, for a core to be dumped", "139, and no core",
           shell("ulimit -c unlimited 2>/dev/null; python3 -c 'import os; os.kill(os.getpid(),"
                 " 11)'; code=$?; ls | grep core && echo BROKEN; exit $code", Answer((139,)))),
)  # fmt: skip
