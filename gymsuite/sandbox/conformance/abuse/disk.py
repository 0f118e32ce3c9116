"""Attacks by files: bytes, holes, inodes, names, links, modes, and files that others rely on."""

import tempfile
from pathlib import Path

from gymsuite.sandbox.conformance.abuse.attack import Answer, Attack, inside, python, shell
from gymsuite.sandbox.conformance.case import PATIENCE, expect, same
from gymsuite.sandbox.conformance.files import refused
from gymsuite.sandbox.protocol import Sandbox

KIND = "disk"
_BYTES, _INODES = ("disk_bytes",), ("inodes",)
_FULL = Answer((), ("disk_full",), b"No space left")
_FLOOD = "mkdir many; seq 5000 | (cd many && xargs touch)"
_SHM_FILES = """
import os
os.chdir("/dev/shm")
try:
    for number in range(500_000):
        open(str(number), "w").close()
    print("BROKEN")
except OSError as error:
    print(error)
"""
_LINKS = """
import os
open("one", "w").close()
try:
    for number in range(100_000):
        os.link("one", str(number))
    print("BROKEN")
except OSError as error:
    print(error)
"""
_DEEP = """
import os
for _ in range(2000):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
open("end", "w").close()
"""
_NAMES = """
import os
for number in range(500):
    open(b"%03d" % number + b"\\xff\\n'\\"*" * 50 + b"x", "w").close()
"""
_DELETED = """
import os, time
file = open("gone", "wb")
os.unlink("gone")
try:
    while True:
        os.write(file.fileno(), bytes(1 << 16))
except OSError:
    pass
if os.fork() == 0:
    for stream in (0, 1, 2):
        os.close(stream)
    time.sleep(1000)
"""


async def _holes(sandbox: Sandbox) -> None:
    result = await sandbox.exec("truncate -s 1T holes; mkdir d; ln holes d", timeout=PATIENCE)
    expect(result.exit_code == 0, result)
    await refused(sandbox.read("holes"), "larger than")
    with tempfile.TemporaryDirectory() as folder:
        await refused(sandbox.download("d", Path(folder) / "down"), "larger than")
    changes = await sandbox.changes("/workspace", max_bytes=1000)
    same([path for path in changes.omitted if "holes" in path],
         ["/workspace/d/holes", "/workspace/holes"])  # fmt: skip


async def _deep(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["python3", "-c", _DEEP], timeout=PATIENCE)
    expect(result.exit_code == 0, result)
    await sandbox.changes("/workspace")
    with tempfile.TemporaryDirectory() as folder:
        await refused(sandbox.download("/workspace", Path(folder) / "down"))


async def _deleted(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["python3", "-c", _DELETED], timeout=PATIENCE)
    expect(result.disk_full, result)
    await refused(sandbox.write("new", bytes(1 << 17)), "No space left")
    await sandbox.changes("/workspace")
    await sandbox.write("new", bytes(1 << 17))


async def _closed(sandbox: Sandbox) -> None:
    await sandbox.exec("chmod -R 000 /workspace /tmp /root", timeout=PATIENCE)
    inside = await sandbox.exec("true", timeout=PATIENCE)
    beside = await sandbox.exec("chmod 700 /workspace /tmp /root", timeout=PATIENCE, cwd="/")
    same((beside.exit_code, inside.timed_out), (0, False))


async def _no_workdir(sandbox: Sandbox) -> None:
    await sandbox.exec("rm -rf /workspace/* /workspace; pwd; ls ..", timeout=PATIENCE)
    expect(not (await sandbox.exec("true", timeout=PATIENCE)).timed_out, "it hangs")
    await sandbox.write("/workspace/file", b"back")
    same((await sandbox.exec("cat /workspace/file", timeout=PATIENCE, cwd="/")).stdout, b"back")


async def _no_system(sandbox: Sandbox) -> None:
    script = (
        "for f in /etc/passwd /etc/group /etc/ld.so.cache; do echo x > $f; done;"
        "echo /tmp/evil.so > /etc/ld.so.preload; rm -rf /bin /sbin /lib /lib64 /etc /usr"
    )
    await sandbox.exec(f"({script}) 2> /dev/null", timeout=PATIENCE)
    expect(not (await sandbox.exec("true", timeout=PATIENCE)).timed_out, "it hangs")
    await sandbox.write("file", b"written")
    same(await sandbox.read("file"), b"written")
    await sandbox.changes("/workspace")


async def _hostile_words(sandbox: Sandbox) -> None:
    env = {
        "LD_PRELOAD": "/tmp/none.so",
        "PATH": "",
        "IFS": "/",
        "ENV": "/dev/zero",
        "": "=",
        "BASH_ENV": "x",
    }
    for variables in (env, {"X": "y" * 100_000}, dict.fromkeys(map(str, range(2000)), "z")):
        result = await sandbox.exec(["/bin/true"], timeout=PATIENCE, env=variables)
        expect(not result.timed_out, result)


async def _loops(sandbox: Sandbox) -> None:
    script = "mkdir -p l/m; ln -s .. l/up; ln -s . l/m/here; ln -s ../../l l/m/round; ln -s m l/n"
    result = await sandbox.exec(script, timeout=PATIENCE)
    expect(result.exit_code == 0, result)
    same(await sandbox.read("l/m/here/here/here/round/round/none"), None)
    await sandbox.changes("/workspace")
    with tempfile.TemporaryDirectory() as folder:
        await refused(sandbox.download("l", Path(folder) / "down"))


ATTACKS = (
    Attack(KIND, "fills its workdir", "ENOSPC; `disk_full`",
           shell("head -c 1G /dev/zero > f", _FULL), _BYTES),
    Attack(KIND, "fills /tmp", "ENOSPC; `disk_full`",
           shell("cd /tmp; head -c 1G /dev/zero > f", _FULL), _BYTES),
    Attack(KIND, "reserves a gigabyte (fallocate)", "ENOSPC at once",
           shell("fallocate -l 1G f", Answer((1,), (), b"No space left", ("disk_full",))), _BYTES),
    Attack(KIND, "makes a file of holes, a terabyte long",
           "refused by read, download and changes", inside(_holes)),
    Attack(KIND, "makes 5,000 files in its workdir", "ENOSPC; `disk_full`",
           shell(_FLOOD, _FULL), _INODES),
    Attack(KIND, "makes 5,000 files in /tmp", "ENOSPC; `disk_full`",
           shell(f"cd /tmp; {_FLOOD}", _FULL), _INODES),
    Attack(KIND, "makes 500,000 files in /dev/shm", "ENOSPC",
           python(_SHM_FILES, Answer((0,), (), b"No space left", ("disk_full",))), _INODES),
    Attack(KIND, "makes 100,000 hard links", "ENOSPC, or EMLINK",
           python(_LINKS, Answer((0,), (), b"Errno", ("disk_full",))), _INODES),
    Attack(KIND, "makes 2,000 directories, one in the other", "looked at as deep as is useful",
           inside(_deep)),
    Attack(KIND, "makes directories that lead to themselves by links", "each is seen once",
           inside(_loops)),
    Attack(KIND, "names files as long and as oddly as can be", "nothing", python(_NAMES)),
    Attack(KIND, "fills the disk with a file that it deleted and holds open",
           "`disk_full`, until it is ended", inside(_deleted), _BYTES),
    Attack(KIND, "takes all rights from all directories", "the sandbox goes on", inside(_closed)),
    Attack(KIND, "removes its workdir from under itself", "the sandbox goes on",
           inside(_no_workdir)),
    Attack(KIND, "sets LD_PRELOAD, PATH and more variables than can be", "the sandbox goes on",
           inside(_hostile_words)),
    Attack(KIND, "overwrites /etc/passwd and ld.so.preload, removes /bin, /lib, /etc and /usr",
           "it harms itself alone; its files are read all the same", inside(_no_system),
           differs={"docker": "all of it is read-only"}, alone=True),
)  # fmt: skip
