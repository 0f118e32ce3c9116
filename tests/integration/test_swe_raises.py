"""A row whose one test of the repair is by `pytest.raises`: no value can be taken out of it."""

import asyncio
import importlib
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Registry
from gymsuite.authoring.redteam.corpus import CHEATS
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache
from gymsuite.swe.judge import Judge
from gymsuite.swe.judgement import Ending, Evidence, Judgement
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.rows import Row, TestPatch
from gymsuite.swe.supply import Supply
from tests.providers import require

pytestmark = [pytest.mark.local, pytest.mark.timeout(900)]

FILES = {
    "setup.py": "from setuptools import setup\nsetup(name='tiny', py_modules=['tiny'])\n",
    "tiny.py": "def half(number):\n    return number // 2\n",
    "test_tiny.py": "import pytest\nimport tiny\n\n\ndef test_small():\n"
    "    value = tiny.half(4)\n    assert value < 3\n\n\ndef test_large():\n"
    "    value = tiny.half(400)\n    assert value > 3\n\n\ndef test_odd():\n"
    "    with pytest.raises(ValueError):\n        tiny.half(3)\n",
}
GOLD = """\
diff --git a/tiny.py b/tiny.py
--- a/tiny.py
+++ b/tiny.py
@@ -1,2 +1,4 @@
 def half(number):
+    if number % 2:
+        raise ValueError(number)
     return number // 2
"""


def added(code: str) -> str:
    """A patch that adds code to the end of the module."""
    lines = [f"+{line}\n" for line in code.split("\n")]
    return (
        "diff --git a/tiny.py b/tiny.py\n--- a/tiny.py\n+++ b/tiny.py\n"
        f"@@ -1,2 +1,{2 + len(lines)} @@\n def half(number):\n     return number // 2\n"
        + "".join(lines)
    )


@pytest.fixture
def row(tmp_path: Path) -> Row:
    require("local")
    repository = tmp_path / "repos/acme__tiny"
    repository.mkdir(parents=True)
    for name, text in FILES.items():
        (repository / name).write_text(text)
    who = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "Begin"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    pybugs = Registry.default().load("coding/pybugs-v1").verifier.__module__
    wheels = importlib.import_module(f"{pybugs}.swe_bench").wheels()
    (tmp_path / "repos/acme__tiny.txt").write_text(wheels)
    head = subprocess.check_output(["git", "-C", str(repository), "rev-parse", "HEAD"], text=True)
    return Row(
        instance_id="acme__tiny-1",
        repo="acme/tiny",
        dialect="swe_bench",
        base_commit=head.strip(),
        problem_statement="Odd numbers have no half.",
        patch=GOLD,
        fail_to_pass=("test_tiny.py::test_odd",),
        pass_to_pass=("test_tiny.py::test_small", "test_tiny.py::test_large"),
        test_patch_when=TestPatch.IN_IMAGE,
        test_commands=("pytest -rA test_tiny.py",),
        log_parser="parse_log_pytest",
    )


def with_judge(folder: Path, body: Callable[[Judge], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        recipes = Recipes(folder / "repos", folder / "recipes")
        roots = (recipes.folder, *Registry.default().image_roots)
        async with open_provider("local", image_roots=roots, cache=default_cache()) as opened:
            return await body(Judge.of(opened.open, Supply(recipes), folder / "judge", seconds=300))

    return asyncio.run(main())


def test_whoever_raises_what_the_tests_ask_for_is_found_out(tmp_path: Path, row: Row) -> None:
    cheat = CHEATS["what a test expects to be raised is raised"].code

    async def body(judge: Judge) -> list[Judgement]:
        return [await judge.judge(row, patch) for patch in (row.patch, added(cheat))]

    gold, forged = with_judge(tmp_path, body)

    assert (gold.ending, gold.evidence) == (Ending.RESOLVED, Evidence.STRUCTURED)
    assert forged.verdict is not None
    assert forged.verdict.fail_to_pass.success == row.fail_to_pass
    assert forged.ending is Ending.UNRESOLVED
    assert forged.forged == "a test that must fail came out as 'passed'"
