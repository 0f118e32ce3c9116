"""Attacks by memory: private, shared, of files that have no name, of the kernel, of no process."""

from gymsuite.sandbox.conformance.abuse.attack import Answer, Attack, inside, python, shell
from gymsuite.sandbox.conformance.case import PATIENCE, alive, same
from gymsuite.sandbox.protocol import Sandbox

KIND = "memory"
_NEEDS = ("memory_bytes",)
_KILLED = Answer((137,), ("oom",))
_SHARED = """
import mmap
memory = mmap.mmap(-1, 1 << 30)
for at in range(0, 1 << 30, 4096):
    memory[at] = 1
print("BROKEN")
"""
_UNNAMED = """
import os
held = os.memfd_create("held")
for _ in range(1024):
    os.write(held, bytes(1 << 20))
print("BROKEN")
"""
_LOCKED = """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mlockall(3)
memory = mmap.mmap(-1, 1 << 30)
for at in range(0, 1 << 30, 4096):
    memory[at] = 1
print("BROKEN")
"""
_HIDDEN = """
import os
held = os.memfd_create("held", 0)
os.set_inheritable(held, True)
if os.fork() == 0:
    os.setsid()
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")
    for stream in (0, 1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), stream)
    os.execv("/bin/sleep", ["sleep", "1000"])
while True:
    os.write(held, bytes(1 << 16))
"""
_GIVEN_UP = """
import os
for process, value in ((1, "1000"), (os.getppid(), "1000"), ("self", "0")):
    try:
        with open(f"/proc/{process}/oom_score_adj", "w") as file:
            file.write(value)
    except OSError:
        pass
held = os.memfd_create("held")
while True:
    os.write(held, bytes(1 << 16))
"""
_SMALL = """
import os, time
for _ in range(50):
    if os.fork() == 0:
        held = b"x" * (16 << 20)
        time.sleep(1000)
time.sleep(1000)
"""
_SOCKETS = """
import os, resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
for _ in range(20):
    if os.fork():
        continue
    held = []
    try:
        while True:
            one, other = socket.socketpair()
            one.setblocking(False)
            held += [one, other]
            try:
                while True:
                    one.send(bytes(1 << 16))
            except BlockingIOError:
                pass
    except OSError:
        time.sleep(1000)
time.sleep(1000)
"""
_TCP = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
held, taken = [], 0
for _ in range(150):
    held += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    for end in held[-2:]:
        end.setblocking(False)
        try:
            while True:
                taken += end.send(bytes(1 << 16))
        except BlockingIOError:
            pass
if taken > 300 << 20:
    print("BROKEN", taken)
"""
_UDP = """
import socket
sender, held, taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), [], 0
for _ in range(1500):
    held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    held[-1].bind(("127.0.0.1", 0))
    held[-1].setblocking(False)
    try:
        for _ in range(5):
            sender.sendto(bytes(60_000), held[-1].getsockname())
    except OSError:
        pass
for end in held:
    try:
        while True:
            taken += len(end.recv(1 << 16))
    except BlockingIOError:
        pass
if taken > 300 << 20:
    print("BROKEN", taken)
"""
_ANSWERS = """
import socket
held = []
try:
    for _ in range(1000):
        held.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
except OSError as error:
    print(error)
if len(held) > 100:
    print("BROKEN", len(held))
while held:
    held.pop().close()
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
for protocol in range(1, 23):
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        print("BROKEN", protocol)
    except OSError:
        pass
"""
_SEGMENTS = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
ctypes.memset(libc.shmat(libc.shmget(0, 64 << 20, 0o1600), None, 0), 1, 64 << 20)
text = ctypes.create_string_buffer(8192)
for _ in range(2000):
    queue = libc.msgget(0, 0o1600)
    while queue >= 0 and libc.msgsnd(queue, text, 8000, 0o4000) == 0:
        pass
for _ in range(2000):
    libc.semget(0, 32000, 0o1600)
    libc.semget(0, 250, 0o1600)
"""
# Without a reservation, so that it is granted also where the machine has set none aside.
_HUGE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
if libc.mmap(None, ctypes.c_size_t(4 << 20), 3, 0x44022, -1, None) != ctypes.c_void_p(-1).value:
    print("BROKEN mmap")
for flags in (0x4, 0x4 | 21 << 26):
    try:
        os.memfd_create("held", flags)
        print("BROKEN memfd")
    except OSError as error:
        print(error)
if libc.shmget(0, ctypes.c_size_t(4 << 20), 0o1600 | 0o4000) != -1:
    print("BROKEN shmget")
"""
_NEGATIVE = """
import os
for number in range(50_000):
    try:
        os.stat(f"/workspace/{number:0200d}")
    except OSError:
        pass
"""


async def _held_by_a_small_process(sandbox: Sandbox) -> None:
    for _ in range(2):
        _KILLED.check(await sandbox.exec(["python3", "-c", _HIDDEN], timeout=PATIENCE))
        await alive(sandbox)
        await sandbox.write("big", bytes(1 << 20))


async def _held_by_nobody(sandbox: Sandbox) -> None:
    for _ in range(5):
        Answer().check(await sandbox.exec(["python3", "-c", _SEGMENTS], timeout=PATIENCE))
    segments = await sandbox.exec("tail -n +2 /proc/sysvipc/shm | wc -l", timeout=PATIENCE)
    same(segments.stdout, b"0\n")


ATTACKS = (
    Attack(
        KIND,
        "takes four times its memory",
        "killed (137); `oom`",
        python("bytearray(1 << 30); print('BROKEN')", _KILLED),
        _NEEDS,
    ),
    Attack(
        KIND, "takes it as shared memory", "killed (137); `oom`", python(_SHARED, _KILLED), _NEEDS
    ),
    Attack(
        KIND,
        "takes it as a file without a name (memfd)",
        "killed (137); `oom`",
        python(_UNNAMED, _KILLED),
        _NEEDS,
    ),
    Attack(
        KIND,
        "has a process hold it that looks small, and as dear as the exec server",
        "killed (137); `oom`; the sandbox goes on",
        inside(_held_by_a_small_process),
        _NEEDS,
    ),
    Attack(
        KIND,
        "has the kernel think that the exec server is what to kill, and takes it",
        "killed (137); `oom`; the sandbox goes on",
        python(_GIVEN_UP, _KILLED),
        _NEEDS,
    ),
    Attack(
        KIND,
        "locks what it takes (mlockall)",
        "killed (137) and `oom`, or refused",
        python(_LOCKED, Answer((1, 137), (), perhaps=("oom",))),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it in many small processes",
        "`oom`, `timed_out`",
        python(_SMALL, Answer((), ("oom",), perhaps=("timed_out", "pids")), timeout=1.5),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it as buffers of sockets, in the kernel",
        "`oom`",
        python(_SOCKETS, Answer((), ("oom",), perhaps=("timed_out",)), timeout=1.5),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it as buffers of TCP, through its own loopback",
        "`oom`, or no more than an eighth of it",
        python(_TCP, Answer((0, 137), perhaps=("oom",))),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it as buffers of UDP, through its own loopback",
        "`oom`, or no more than an eighth of it",
        python(_UDP, Answer((0, 137), perhaps=("oom",))),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it as answers of the kernel that it never reads (netlink)",
        "ENFILE after a few sockets",
        python(_ANSWERS, Answer((0,), (), b"Too many open files in system")),
    ),
    Attack(
        KIND,
        "takes it as segments, messages and semaphores that no process holds (System V)",
        "gone with their process, or a few MiB",
        inside(_held_by_nobody),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it as huge pages, which no limit of memory counts",
        "each refused",
        python(_HUGE),
    ),
    Attack(
        KIND,
        "takes it in /dev/shm",
        "ENOSPC",
        shell("head -c 1G /dev/zero > /dev/shm/f", Answer((1,), (), b"No space left")),
        _NEEDS,
    ),
    Attack(
        KIND,
        "takes it in /dev/shm, /tmp, its home and its workdir together",
        "ENOSPC in each; Python still runs",
        shell(
            "for d in /dev/shm /tmp /root .; do head -c 1G /dev/zero > $d/f; done; exec python3 -c"
            " pass",
            Answer((0,), (), b"No space left", perhaps=("disk_full",)),
        ),
        ("memory_bytes", "disk_bytes"),
    ),
    Attack(
        KIND,
        "reads more files than fit into its memory",
        "nothing: the cache gives way",
        shell(
            "find /usr -type f -size +100k 2>/dev/null | head -c 200k | xargs cat | head -c 300M"
            " > /dev/null"
        ),
        _NEEDS,
    ),
    Attack(
        KIND,
        "asks for 50,000 names that there are not, for the kernel to remember",
        "nothing: they are forgotten",
        python(_NEGATIVE),
        _NEEDS,
    ),
)
