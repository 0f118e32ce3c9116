"""Rows made of pybugs tasks go the way of SWE-bench's: image, patch, tests, verdict."""

import asyncio
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gymsuite import DefinitionError, Registry
from gymsuite.sandbox.protocol import FileState, Sandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache
from gymsuite.swe.early import Processors
from gymsuite.swe.judge import Judge
from gymsuite.swe.judgement import Ending, Evidence, Judgement
from gymsuite.swe.leaks import scan
from gymsuite.swe.loading import load_rows
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.reverse import reverse_patch
from gymsuite.swe.rows import Row
from gymsuite.swe.supply import Supply
from gymsuite.types import SandboxSpec
from gymsuite.verify.patch import make_patch
from tests.providers import require

PYBUGS = Registry.default().load("coding/pybugs-v1")
export = importlib.import_module(f"{PYBUGS.verifier.__module__}.swe_bench").export
TASKS = ("toolz-1", "toolz-4")

# The first of them builds images and learns the names of tests.
pytestmark = [pytest.mark.local, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Exported:
    """Rows, the folder that they lie in, and how to work with a judge of them."""

    folder: Path
    rows: tuple[Row, ...]

    def with_judge(self, body: Callable[[Judge], Awaitable[Any]], provider: str = "local") -> Any:
        async def main() -> Any:
            recipes = Recipes(self.folder / "repos", self.folder / "recipes")
            roots = (recipes.folder, *Registry.default().image_roots)
            opening = open_provider(provider, image_roots=roots, cache=default_cache())
            async with opening as opened:
                judge = Judge.of(opened.open, Supply(recipes), self.folder / "judge", seconds=300)
                return await body(replace(judge, processors=Processors(count=0)))

        return asyncio.run(main())

    def judge(self, patch: str | bytes, at: int = 0) -> Judgement:
        found: Judgement = self.with_judge(lambda judge: judge.judge(self.rows[at], patch))
        return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    require("local")
    folder = tmp_path_factory.mktemp("export")
    tasks = [task for task in PYBUGS.tasks if task.id in TASKS]
    empty = Exported(folder, ())

    async def body(judge: Judge) -> None:
        await export(tasks, folder, judge.open_sandbox, judge)

    empty.with_judge(body)
    yield replace(empty, rows=load_rows(str(folder / "rows.jsonl")))
    shutil.rmtree(folder / "recipes")


def test_gold_is_resolved_and_nothing_is_not(exported: Exported) -> None:
    async def body(judge: Judge) -> list[Judgement]:
        return [await judge.run(row, patch) for row in exported.rows for patch in (row.patch, b"")]

    found = exported.with_judge(body)

    assert [one.ending for one in found] == [Ending.RESOLVED, Ending.UNRESOLVED] * len(TASKS)
    assert {one.evidence for one in found[::2]} == {Evidence.SEALED}
    assert [one.how for one in found] == ["git apply", "nothing to apply"] * len(TASKS)
    assert [one.differences for one in found] == [()] * len(found)


def test_the_second_look_is_taken_beside_the_first_where_a_processor_is_idle(
    exported: Exported,
) -> None:
    opened: list[int] = [0]

    async def body(judge: Judge) -> Judgement:
        @asynccontextmanager
        async def counted(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            async with judge.open_sandbox(spec) as sandbox:
                opened.append(opened[-1] + 1)
                yield sandbox
                opened.append(opened[-1] - 1)

        row = exported.rows[0]
        async with judge.open_row(row) as sandbox:
            digest = str(sandbox.description["digest"])
        await judge.seals.of(row, digest, judge.open_row)
        watched = replace(judge, open_sandbox=counted, processors=Processors(count=2))
        return await watched.run(row, row.patch)

    found = exported.with_judge(body)

    assert (found.ending, found.evidence) == (Ending.RESOLVED, Evidence.SEALED)
    assert max(opened) == 2


@pytest.mark.docker
def test_docker_comes_to_the_same_verdicts(exported: Exported) -> None:
    require("docker")

    async def body(judge: Judge) -> list[Judgement]:
        row = exported.rows[0]
        return [await judge.run(row, patch) for patch in (row.patch, b"")]

    found = exported.with_judge(body, "docker")

    assert [one.ending for one in found] == [Ending.RESOLVED, Ending.UNRESOLVED]
    assert found[0].evidence is Evidence.SEALED


RENAME = "diff --git a/LICENSE.txt b/LICENCE\nrename from LICENSE.txt\nrename to LICENCE\n"
MODE = "diff --git a/README.rst b/README.rst\nold mode 100644\nnew mode 100755\n"
BINARY = asyncio.run(make_patch({}, {"x.bin": FileState(0o100644, bytes(range(256)))})).decode()
LATIN_1 = (
    b"diff --git a/latin.txt b/latin.txt\nnew file mode 100644\n--- /dev/null\n+++ b/latin.txt\n"
    b"@@ -0,0 +1 @@\n+caf\xe9\n"
)
EVERYTHING = (BINARY + RENAME + MODE).encode() + LATIN_1
GIT_DIR = (
    "--- a/.git/config\n+++ b/.git/config\n@@ -1,2 +1,3 @@\n [core]\n+\tfsmonitor = /bin/false\n"
)


OUTCOMES: dict[str, tuple[Callable[[str], str | bytes], Ending, str]] = {
    "no newline": (lambda gold: gold.rstrip("\n"), Ending.RESOLVED, "patch --fuzz=5"),
    "crlf": (lambda gold: gold.replace("\n", "\r\n"), Ending.RESOLVED, "patch --fuzz=5"),
    "everything": (lambda gold: gold.encode() + EVERYTHING, Ending.RESOLVED, "git apply"),
    "mode only": (lambda _: MODE, Ending.UNRESOLVED, "git apply"),
    "blank": (lambda _: " \n", Ending.NOT_APPLIED, ""),
    "junk": (lambda _: "no patch at all", Ending.NOT_APPLIED, ""),
    "into .git": (lambda _: GIT_DIR, Ending.NOT_APPLIED, ""),
    "empty": (lambda _: "", Ending.EMPTY, ""),
}


def test_every_kind_of_patch_has_its_outcome(exported: Exported) -> None:
    row = exported.rows[0]

    async def body(judge: Judge) -> dict[str, Judgement]:
        return {
            kind: await judge.judge(row, change(row.patch))
            for kind, (change, _, _) in OUTCOMES.items()
        }

    found = exported.with_judge(body)
    assert {kind: (one.ending, one.how) for kind, one in found.items()} == {
        kind: (ending, how) for kind, (_, ending, how) in OUTCOMES.items()
    }


def test_tests_that_a_patch_brings_are_undone_and_nothing_is_installed_for_them(
    exported: Exported,
) -> None:
    conftest = (
        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n"
        "+++ b/conftest.py\n@@ -0,0 +1 @@\n+raise SystemExit(0)\n"
    )
    found = exported.judge(exported.rows[0].patch + conftest)
    assert (found.ending, found.undone) == (Ending.RESOLVED, ("conftest.py",))
    assert b"nothing to do" in found.log


def test_what_an_installation_reads_is_installed_again(exported: Exported) -> None:
    row = exported.rows[0]
    change = (
        "diff --git a/setup.py b/setup.py\n--- a/setup.py\n+++ b/setup.py\n"
        "@@ -0,0 +1 @@\n+# changed\n"
    )
    installed = exported.judge(row.patch + change)
    assert installed.ending is Ending.RESOLVED
    assert b"nothing to do" not in installed.log
    assert b"Successfully installed toolz" in installed.log


def test_upstreams_own_verdict_can_be_had_with_its_faults(exported: Exported) -> None:
    """A conftest that passes everything is resolved there, and not here."""
    hook = [
        "import pytest",
        "@pytest.hookimpl(hookwrapper=True)",
        "def pytest_runtest_makereport(item, call):",
        "    outcome = yield",
        "    report = outcome.get_result()",
        "    report.outcome, report.longrepr = 'passed', None",
    ]
    patch = (
        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n"
        f"+++ b/conftest.py\n@@ -0,0 +1,{len(hook)} @@\n" + "".join(f"+{line}\n" for line in hook)
    )

    async def body(judge: Judge) -> list[Judgement]:
        row = exported.rows[0]
        return [await each.judge(row, patch) for each in (judge, replace(judge, strict=True))]

    ours, upstreams = exported.with_judge(body)

    assert (ours.ending, ours.undone) == (Ending.UNRESOLVED, ("conftest.py",))
    assert (upstreams.ending, upstreams.evidence) == (Ending.RESOLVED, Evidence.LOG)


def test_a_patch_that_hangs_is_killed_and_told_from_a_broken_world(exported: Exported) -> None:
    patch = (
        "diff --git a/toolz/__init__.py b/toolz/__init__.py\n--- a/toolz/__init__.py\n"
        "+++ b/toolz/__init__.py\n@@ -1 +1,3 @@\n+import time\n+time.sleep(1000)\n"
        " from .itertoolz import *\n"
    )

    async def body(judge: Judge) -> Judgement:
        return await replace(judge, seconds=3.0).judge(exported.rows[0], patch)

    found = exported.with_judge(body)
    assert found.ending is Ending.TIMED_OUT
    assert found.log.endswith(b"Timeout error: 3 seconds exceeded.")


LEAKS = {
    "git commit -q --allow-empty -m future && git tag fixed && git reset -q --hard HEAD~1":
        "a ref or a reflog leads to commit",
    "echo future | git hash-object -w --stdin": "is in the object store, and no part",
    "git remote add origin /somewhere": "there is a remote, origin",
    "echo /tmp > .git/objects/info/alternates": "there is .git/objects/info/alternates",
    "git init -q /opt/other": "another repository in /opt/other",
    "git bundle create -q /root/future.bundle HEAD": "git objects in /root/future.bundle",
    "echo '# changed' >> toolz/__init__.py": "not as committed: toolz/__init__.py",
    "mkdir -p build/lib && cp /tmp/fixed.py build/lib/itertoolz.py":
        "/testbed/build/lib/itertoolz.py holds what the solution makes",
    "cp /tmp/gold.patch toolz/itertoolz.py.rej": "/testbed/toolz/itertoolz.py.rej holds",
    "mkdir -p /root/.cache/pip && cd /tmp && mkdir -p w/toolz && cp fixed.py w/toolz/itertoolz.py "
    "&& cd w && python3 -m zipfile -c /root/.cache/pip/0.body toolz/itertoolz.py":
        "/root/.cache/pip/0.body!itertoolz.py holds",
}  # fmt: skip
"""What is done to an image, and what is to be said of it."""

REFLOG = (
    "git -c core.logAllRefUpdates=true commit -q --allow-empty -m future && "
    "git -c core.logAllRefUpdates=true reset -q --hard HEAD~1"
)
SETTINGS = (
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b && "
    "git apply /tmp/gold.patch && cp toolz/itertoolz.py /tmp/fixed.py && git checkout -q -- . && "
)


def test_an_image_that_shows_the_future_is_found_out(exported: Exported) -> None:
    row = exported.rows[0]

    async def look(judge: Judge, *leaks: str) -> list[str]:
        async with judge.open_row(row) as sandbox:
            await sandbox.write("/tmp/gold.patch", row.patch.encode())  # noqa: S108 - inside
            done_to_it = " && ".join(f"({leak})" for leak in leaks)
            command = f"{SETTINGS} {done_to_it} && rm -rf /tmp/gold.patch /tmp/fixed.py /tmp/w"
            done = await sandbox.exec(["bash", "-c", command], timeout=60)
            assert done.exit_code == 0, done.output
            return await scan(row, sandbox)

    async def body(judge: Judge) -> tuple[list[str], list[str], list[str]]:
        return await look(judge, "true"), await look(judge, REFLOG), await look(judge, *LEAKS)

    clean, reflog, leaky = exported.with_judge(body)
    assert clean == []
    assert any(problem.startswith("a ref or a reflog leads to commit") for problem in reflog)
    assert [said for said in LEAKS.values() if not any(said in each for each in leaky)] == []


def test_a_scan_that_cannot_end_is_a_refusal(exported: Exported) -> None:
    row = exported.rows[0]

    async def body(judge: Judge) -> None:
        async with judge.open_row(row) as sandbox:
            await sandbox.exec("rm -rf .git", timeout=60)
            await scan(row, sandbox)

    with pytest.raises(DefinitionError, match="cannot be looked through for leaks"):
        exported.with_judge(body)


def swebench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("gymsuite"))
    return subprocess.run(
        [program, "swebench", *arguments, "--repo-dir", "repos", "--provider", "local"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_leaves_upstreams_files_and_goes_on_where_it_was(exported: Exported) -> None:
    common = ("eval", "--dataset", "rows.jsonl", "--run-id", "r", "-j", "2")
    first = swebench(exported.folder, *common, "-p", "gold.json")
    again = swebench(exported.folder, *common, "-p", "gold.json", "--json")

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert "2 of 2 resolved" in first.stdout
    report = json.loads(again.stdout)
    assert report["resolved_instances"] == 2
    assert json.loads((exported.folder / "gold.r.json").read_text()) == report
    files = exported.folder / "logs/run_evaluation/r/gold" / exported.rows[0].instance_id
    assert sorted(path.name for path in files.iterdir()) == [
        "eval.sh", "patch.diff", "report.json", "run_instance.log", "test_output.txt",
        "verdict.json",
    ]  # fmt: skip


def test_rows_are_vetted_and_what_is_flaky_can_be_waived(exported: Exported) -> None:
    one = ("-i", exported.rows[0].instance_id)
    common = ("eval", "--dataset", "rows.jsonl", "--run-id", "w", "-p", "gold.json", *one)
    unvetted = swebench(exported.folder, *common, "--waive-flaky", "--cache", "new")
    vetted = swebench(exported.folder, "vet", "rows.jsonl", *one, "--runs", "1", "--json")
    waived = swebench(exported.folder, *common, "--waive-flaky")

    assert unvetted.returncode == 2
    assert "run `gymsuite swebench vet`" in unvetted.stderr
    assert vetted.returncode == 0, vetted.stderr
    (found,) = json.loads(vetted.stdout)
    assert (found["gold"], found["empty"]) == (["resolved"], ["unresolved"])
    assert found["evidence"] == "sealed"
    assert waived.returncode == 0, waived.stderr


UNRELATED = (
    "diff --git a/toolz/__init__.py b/toolz/__init__.py\n--- a/toolz/__init__.py\n"
    "+++ b/toolz/__init__.py\n@@ -1 +1,2 @@\n+import time\n from .itertoolz import *"
)


def smith_of(exported: Exported) -> dict[str, object]:
    """The first row as SWE-smith would have it: its base is right, and its patch is the bug."""
    row = exported.rows[0]
    task = row.instance_id.removeprefix("pybugs__")
    repository = exported.folder / "repos" / f"{row.repo.replace('/', '__')}.git"
    command = ["git", "-C", str(repository), "rev-parse", f"refs/heads/{task}"]
    fixed = subprocess.run(command, capture_output=True, text=True, check=True).stdout[:8]
    name = f"{row.repo.replace('/', '__')}.{fixed}"
    return {
        "instance_id": f"{name}.func_pm_op__a1b2c3d4",
        "repo": f"swesmith/{name}",
        "image_name": f"swebench/swesmith.x86_64.{name.replace('__', '_1776_')}",
        "patch": reverse_patch(row.patch),
        "FAIL_TO_PASS": list(row.fail_to_pass),
        "PASS_TO_PASS": list(row.pass_to_pass),
        "problem_statement": row.problem_statement,
    }


def test_swe_smiths_rows_are_judged_on_their_bug(exported: Exported) -> None:
    """A patch that does not apply at first takes the bug with it nowhere."""
    rows = exported.folder / "smith.jsonl"
    rows.write_text(json.dumps(smith_of(exported)))
    (row,) = load_rows(str(rows))
    gold = swebench(exported.folder, "eval", "smith.jsonl", "--gold", "--json")
    empty = swebench(exported.folder, "eval", "smith.jsonl", "-p", "empty", "--json")

    async def body(judge: Judge) -> list[Judgement]:
        return [await judge.run(row, patch) for patch in (b"", UNRELATED)]

    nothing, unrelated = exported.with_judge(body)

    assert json.loads(gold.stdout)["resolved_ids"] == [row.instance_id], gold.stderr
    assert json.loads(empty.stdout)["empty_patch_ids"] == [row.instance_id], empty.stderr
    assert (nothing.ending, nothing.how) == (Ending.UNRESOLVED, "nothing to apply")
    assert (unrelated.ending, unrelated.how) == (Ending.UNRESOLVED, "patch --fuzz=5")
    verdict = exported.folder / "logs/run_evaluation/run/gold" / row.instance_id / "verdict.json"
    assert json.loads(verdict.read_text())["evidence"] == "sealed"
