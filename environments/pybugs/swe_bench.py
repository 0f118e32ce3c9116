"""Writes tasks as SWE-bench rows, with a repository that has a future, for any harness to run.

    python -m pybugs.swe_bench FOLDER toolz-1 tabulate-2      (PYTHONPATH=environments)

    FOLDER/rows.jsonl               rows with v5's columns
    FOLDER/repos/pybugs__toolz.git  a history that goes on after each base commit, to the repair
    FOLDER/repos/pybugs__toolz.txt  the wheels that its tests need
    FOLDER/gold.json, empty.jsonl   predictions in two layouts

The libraries' code is taken from the pinned sources of the image; nothing of it is stored here.
"""

import asyncio
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gymsuite.errors import DefinitionError
from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import FileState, OpenSandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache, recipes_folder, suite_root
from gymsuite.swe.judge import Judge
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.rows import Row as SweRow
from gymsuite.swe.supply import Supply
from gymsuite.types import Task
from gymsuite.verify.patch import make_patch

from .row import Row, row_of

SAMPLE = (
    "toolz-1", "toolz-4", "toolz-6", "tabulate-1", "tabulate-2", "boltons-1", "inflect-1",
    "boltons-2",
)  # fmt: skip

# freezegun would bring a second copy of python-dateutil along.
_LEFT_OUT = ("#", "freezegun")
_TAR_BYTES = 64 << 20
_FILE = 0o100644
_WHO = "pybugs <pybugs@localhost> {date} +0000"
_BEGIN, _BASE, _FIX = 1_600_000_000, 1_700_000_000, 1_700_100_000
_SCRIPT = """\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show --stat
git -c core.fileMode=false diff {base}
source /opt/miniconda3/bin/activate
conda activate testbed
python -m pip install -e .
git checkout {base} {changed}
git apply -v - <<'EOF_114329324912'
{test_patch}
EOF_114329324912
: '>>>>> Start Test Output'
pytest -rA {files}
: '>>>>> End Test Output'
git checkout {base} {changed}
"""

Files = Mapping[str, bytes]


async def export(
    tasks: Sequence[Task], folder: Path, open_sandbox: OpenSandbox, judge: Judge
) -> Path:
    """Write rows, repositories and predictions of tasks below a folder; returns the rows' file.

    `judge` runs the tests, with the repair twice and without it once, to learn their names.
    """
    repos = folder / "repos"
    repos.mkdir(parents=True, exist_ok=True)
    sources: dict[str, Files] = {}
    rows: list[SweRow] = []
    for task in tasks:
        row = row_of(task)
        if row.library not in sources:
            sources[row.library] = await _source(row, open_sandbox)
            (repos / f"pybugs__{row.library}.txt").write_text(wheels(), "utf-8")
        drafted = await _draft(task, row, sources[row.library], repos)
        rows.append(await _with_tests(drafted, judge))
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(_columns(row))}\n" for row in rows), "utf-8")
    _write_predictions(folder, rows)
    return path


async def _source(row: Row, open_sandbox: OpenSandbox) -> Files:
    """All files of a library, as they are pinned in the image."""
    async with open_sandbox(row.spec) as sandbox:
        packed = await sandbox.exec(
            ["tar", "--create", "--file=-", "--format=pax", "."],
            timeout=120,
            max_output=_TAR_BYTES,
        )
    if packed.exit_code != 0 or packed.truncated:
        raise DefinitionError(f"cannot pack {row.workdir}: {packed.stderr[-300:]!r}")
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                files[member.name.removeprefix("./")] = content.read()
    return files


def wheels() -> str:
    """The packages that the pybugs image runs tests with, and what builds the libraries."""
    pinned: dict[str, None] = {}
    for name in ("build.txt", "tools.txt"):
        text = (suite_root() / "sandboxes/pybugs" / name).read_text("utf-8")
        lines = (line for line in text.splitlines() if not line.startswith(_LEFT_OUT))
        pinned |= dict.fromkeys(lines)
    return "".join(f"{line}\n" for line in sorted(pinned))


async def _draft(task: Task, row: Row, fixed: Files, repos: Path) -> SweRow:
    """A row without names of tests: its repository, its commits and its patches."""
    changed = row.prepared({path: fixed[path] for path in row.paths})
    base = {path: data for path, data in {**fixed, **changed}.items() if data is not None}
    name = f"pybugs/{row.library}"
    repository = repos / f"pybugs__{row.library}.git"
    commit = _commit(repository, task.id, base, fixed)
    hidden = set(row.hidden_tests)
    patches = [
        await make_patch(_states(base, paths), _states(fixed, paths))
        for paths in (set(row.paths) - hidden, hidden)
    ]
    patch, test_patch = (data.decode() for data in patches)
    script = _SCRIPT.format(
        base=commit,
        changed=" ".join(sorted(hidden & base.keys())),
        files=" ".join(row.expected.files),
        test_patch=test_patch,
    )
    return SweRow(
        instance_id=f"pybugs__{task.id}",
        repo=name,
        dialect="swe-bench",
        base_commit=commit,
        problem_statement=task.prompt,
        version=row.version,
        environment_setup_commit=commit,
        created_at="2023-11-14T22:13:20Z",
        patch=patch,
        test_patch=test_patch,
        image=f"sweb.eval.x86_64.pybugs__{task.id}:latest",
        eval_script=script,
        log_parser="parse_log_pytest",
    )


def _states(files: Files, paths: Iterable[str]) -> dict[str, FileState]:
    return {path: FileState(_FILE, files[path]) for path in paths if path in files}


def _commit(repository: Path, task: str, base: Files, fixed: Files) -> str:
    """Add a beginning, a base and a future to a repository; returns the base's commit."""
    if not repository.is_dir():
        _git(["init", "--quiet", "--bare", "--template=", str(repository)])
    beginning = {path: data for path, data in base.items() if "/" not in path}
    stream = b"".join(
        [
            *_fast_import("refs/heads/main", _BEGIN, "Begin", beginning),
            *_fast_import(f"refs/bases/{task}", _BASE, f"Work on {task}", base, "refs/heads/main"),
            *_fast_import(
                f"refs/heads/{task}", _FIX, f"Repair {task}", fixed, f"refs/bases/{task}"
            ),
            f"reset refs/tags/{task}-repaired\nfrom refs/heads/{task}\n\n".encode(),
        ]
    )
    _git(["-C", str(repository), "fast-import", "--quiet", "--force"], stream)
    return _git(["-C", str(repository), "rev-parse", f"refs/bases/{task}"]).decode().strip()


def _fast_import(
    ref: str, date: int, message: str, files: Files, parent: str = ""
) -> Iterator[bytes]:
    yield f"reset {ref}\n\ncommit {ref}\n".encode()
    yield f"committer {_WHO.format(date=date)}\ndata {len(message)}\n{message}\n".encode()
    yield f"from {parent}\n".encode() if parent else b""
    yield b"deleteall\n"
    for path, data in sorted(files.items()):
        yield f'M 100644 inline "{path}"\ndata {len(data)}\n'.encode() + data + b"\n"
    yield b"\n"


def _git(arguments: Sequence[str], given: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - the git that is on the PATH
        input=given,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise DefinitionError(f"git {arguments[0]}: {done.stderr[-500:]!r}")
    return done.stdout


async def _with_tests(row: SweRow, judge: Judge) -> SweRow:
    """Name the tests that the repair makes pass, and those that pass with and without it."""
    first, second = [(await judge.run(row, row.patch)).results.statuses for _ in range(2)]
    before = (await judge.run(row, b"")).results.statuses
    right = [name for name, status in first.items() if status == second.get(name) == "PASSED"]
    fail = tuple(name for name in right if before.get(name) != "PASSED")
    if not fail or len(fail) == len(right):
        raise DefinitionError(f"{row.instance_id}: no test of its files tells the repair")
    hold = tuple(name for name in right if before.get(name) == "PASSED")
    return row.model_copy(update={"fail_to_pass": fail, "pass_to_pass": hold})


def _columns(row: SweRow) -> dict[str, str]:
    return {
        "repo": row.repo,
        "instance_id": row.instance_id,
        "base_commit": row.base_commit,
        "patch": row.patch,
        "test_patch": row.test_patch,
        "problem_statement": row.problem_statement,
        "hints_text": "",
        "created_at": row.created_at,
        "version": row.version,
        "FAIL_TO_PASS": json.dumps(row.fail_to_pass),
        "PASS_TO_PASS": json.dumps(row.pass_to_pass),
        "environment_setup_commit": row.environment_setup_commit,
        "eval_script": row.eval_script,
        "log_parser": row.log_parser,
        "eval_type": "pass_and_fail",
        "image": row.image,
    }


def _write_predictions(folder: Path, rows: Sequence[SweRow]) -> None:
    gold = [
        {"instance_id": r.instance_id, "model_name_or_path": "gold", "model_patch": r.patch}
        for r in rows
    ]
    empty = [{**one, "model_name_or_path": "empty", "model_patch": ""} for one in gold]
    (folder / "gold.json").write_text(json.dumps(gold), "utf-8")
    lines = "".join(f"{json.dumps(one)}\n" for one in empty)
    (folder / "empty.jsonl").write_text(lines, "utf-8")


async def main(folder: Path, names: Sequence[str]) -> None:
    """Export the named tasks, or a sample of them."""
    registry = Registry.default()
    wanted = names or SAMPLE
    tasks = [t for t in registry.load("coding/pybugs-v1").tasks if t.id in wanted]
    recipes = Recipes(folder / "repos", recipes_folder())
    async with open_provider(
        None, image_roots=registry.image_roots, cache=default_cache(), report=print
    ) as provider:
        judge = Judge.of(provider.open, Supply(recipes), default_cache() / "swe")
        await export(tasks, folder, provider.open, judge)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
