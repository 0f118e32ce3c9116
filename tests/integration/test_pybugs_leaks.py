"""No prepared sandbox holds a copy of what a task has broken, in whatever form."""

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite import OpenSandbox, Registry, SandboxSpec, Task
from gymsuite.verify.source import Source

InSuite = Callable[[Callable[[OpenSandbox], Awaitable[Any]]], Any]

PYBUGS = Registry.default().load("coding/pybugs-v1")
MODULE = PYBUGS.verifier.__module__
row_of = importlib.import_module(f"{MODULE}.row").row_of
read_all = importlib.import_module(f"{MODULE}.checkout").read_all
TASKS = {task.id: task for task in PYBUGS.tasks}
AT_ONCE = 4

# Runs inside a sandbox: looks through every file, through archives and compressed files too, and
# through bytecode by its name. `functions` are texts with all white space squeezed.
SCAN = r"""
import bz2, gzip, io, json, lzma, os, re, sys, tarfile, zipfile, zlib
task = json.load(sys.stdin)
wanted = re.compile("|".join(rf"def {name}\b" for name in task["names"]).encode())
functions = {name: text.encode() for name, text in task["functions"].items()}
ends = tuple(task["modules"])
found = []
def squeeze(data):
    return b"".join(data.split())
def look(where, data, depth=0):
    plain = re.sub(r"\.cpython-3\d+(\.opt-\d)?\.pyc$", ".py", where).replace("/__pycache__", "")
    if plain.endswith(ends):
        found.append([where, "a module of that name"])
    if wanted.search(data):
        thin = squeeze(data)
        found.extend([where, name] for name, text in functions.items() if text in thin)
    if depth < 3:
        unpack(where, data, depth)
def unpack(where, data, depth):
    try:
        if data[:2] == b"PK" and zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as box:
                for name in box.namelist():
                    look(f"{where}!/{name}", box.read(name), depth + 1)
        elif data[:2] == b"\x1f\x8b":
            look(where + "!gz", gzip.decompress(data), depth + 1)
        elif data[:3] == b"BZh":
            look(where + "!bz2", bz2.decompress(data), depth + 1)
        elif data[:6] == b"\xfd7zXZ\0":
            look(where + "!xz", lzma.decompress(data), depth + 1)
        elif data[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(data)) as box:
                for member in box:
                    if member.isfile():
                        look(f"{where}!/{member.name}", box.extractfile(member).read(), depth + 1)
        elif "/.git/objects/" in where and data[:1] == b"\x78":
            look(where + "!git", zlib.decompress(data), depth + 1)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError,
            zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error):
        pass
count = 0
for root in task["roots"]:
    for folder, folders, names in os.walk(root):
        outside = [os.path.join(folder, f) in ("/proc", "/sys", "/dev") for f in folders]
        folders[:] = [f for f, skip in zip(folders, outside) if not skip]
        for name in names:
            path = os.path.join(folder, name)
            try:
                if not os.path.islink(path) and os.path.getsize(path) <= 64 << 20:
                    with open(path, "rb") as stream:
                        head = stream.read(4)
                        if head != b"\x7fELF" and not name.endswith((".jar", ".h", ".html")):
                            count += 1
                            look(path, head + stream.read())
            except OSError:
                pass
json.dump({"found": found, "count": count}, sys.stdout)
"""


def spec_of(task: Task) -> SandboxSpec:
    assert task.sandbox is not None
    return task.sandbox


async def pinned(open_sandbox: OpenSandbox, tasks: list[Task]) -> dict[str, dict[str, str]]:
    """The text of each function that a task breaks, as it is in the image."""
    texts: dict[str, dict[str, str]] = {}
    for task in tasks:
        row = row_of(task)
        async with open_sandbox(spec_of(task)) as sandbox:
            files = await read_all(sandbox, row.workdir, {bug.file for bug in row.bugs})
        for bug in row.bugs:
            source = Source(files[bug.file])
            text = source.text(source.function(bug.function)).decode()
            texts.setdefault(task.id, {})[bug.function] = "".join(text.split())
    return texts


async def scan(
    open_sandbox: OpenSandbox,
    task: Task,
    functions: dict[str, str],
    modules: list[str],
    roots: list[str],
) -> tuple[list[tuple[str, str]], int]:
    wanted = {
        "names": sorted({name.rpartition(".")[2] for name in functions}),
        "functions": functions,
        "modules": modules,
        "roots": roots,
    }
    async with open_sandbox(spec_of(task)) as sandbox:
        assert PYBUGS.prepare is not None
        await PYBUGS.prepare(task, sandbox)
        done = await sandbox.exec(
            ["python", "-B", "-c", SCAN], stdin=json.dumps(wanted).encode(), timeout=900
        )
    assert done.exit_code == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    return [(where, what) for where, what in seen["found"]], seen["count"]


@pytest.mark.slow
def test_no_file_of_the_sandbox_is_a_second_copy_of_a_broken_module(in_suite: InSuite) -> None:
    """Looked for by name and by text, from the root up; checkouts of others are where they are."""
    tasks = list(TASKS.values())
    places = {f"{row_of(task).workdir}/{bug.file}" for task in tasks for bug in row_of(task).bugs}
    modules = sorted(
        place.partition("/src/")[2] or "/".join(place.split("/")[3:]) for place in places
    )

    async def body(open_sandbox: OpenSandbox) -> tuple[list[tuple[str, str]], int]:
        texts = await pinned(open_sandbox, tasks)
        functions = {
            f"{task}:{name}": text for task, named in texts.items() for name, text in named.items()
        }
        return await scan(
            open_sandbox, tasks[0], functions, [f"/{module}" for module in modules], ["/"]
        )

    found, count = in_suite(body)

    assert count > 1000
    assert {where for where, _ in found} >= places
    # The history of the one checkout that was prepared holds that checkout, of course.
    history = f"{spec_of(tasks[0]).workdir}/.git/"
    copies = [where for where, _ in found if where not in places and not where.startswith(history)]
    assert copies == []


@pytest.mark.slow
def test_no_checkout_holds_the_text_that_its_task_has_broken(in_suite: InSuite) -> None:
    """Each task's own checkout and its history, after it was prepared."""

    async def body(open_sandbox: OpenSandbox) -> dict[str, list[tuple[str, str]]]:
        texts = await pinned(open_sandbox, list(TASKS.values()))
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(task: Task) -> list[tuple[str, str]]:
            async with gate:
                workdir = spec_of(task).workdir
                found, count = await scan(open_sandbox, task, texts[task.id], ["?"], [workdir])
                assert count > 10
                return found

        found = await asyncio.gather(*(one(task) for task in TASKS.values()))
        return dict(zip(TASKS, found, strict=True))

    found = in_suite(body)

    assert {name: leaks for name, leaks in found.items() if leaks} == {}


def test_the_scan_finds_a_copy_wherever_it_is_hidden(in_suite: InSuite) -> None:
    task = TASKS["toolz-1"]
    hide = r"""
import gzip, io, pathlib, subprocess, tarfile, zipfile
text = pathlib.Path("/tmp/kept.py").read_bytes()
pathlib.Path("copy.txt").write_bytes(text.replace(b"    ", b"\t"))
pathlib.Path("copy.gz").write_bytes(gzip.compress(text))
with zipfile.ZipFile("copy.whl", "w", zipfile.ZIP_DEFLATED) as box:
    box.writestr("deep/inside.py", text)
with tarfile.open("copy.tgz", "w:gz") as box:
    member = tarfile.TarInfo("x/y.py")
    member.size = len(text)
    box.addfile(member, io.BytesIO(text))
subprocess.run(["git", "hash-object", "-w", "/tmp/kept.py"], check=True)
"""

    async def body(open_sandbox: OpenSandbox) -> list[tuple[str, str]]:
        texts = await pinned(open_sandbox, [task])
        async with open_sandbox(spec_of(task)) as sandbox:
            kept = await sandbox.read(row_of(task).bugs[0].file)
            assert kept is not None
            assert PYBUGS.prepare is not None
            await PYBUGS.prepare(task, sandbox)
            await sandbox.write("/tmp/kept.py", kept)  # noqa: S108 - inside the sandbox
            done = await sandbox.exec(["python", "-B", "-c", hide], timeout=60)
            assert done.exit_code == 0, done.output
            wanted = {"names": ["isdistinct"], "functions": texts[task.id]}
            wanted |= {"modules": ["?"], "roots": [spec_of(task).workdir]}
            done = await sandbox.exec(
                ["python", "-B", "-c", SCAN], stdin=json.dumps(wanted).encode(), timeout=60
            )
            return [(where, what) for where, what in json.loads(done.stdout)["found"]]

    found = [Path(where.partition("!")[0]).name for where, _ in in_suite(body)]

    assert {"copy.txt", "copy.gz", "copy.whl", "copy.tgz"} <= {*found}
    assert len({*found}) == 5
