"""`gymsuite sandbox check` judges a provider of anybody's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import gymsuite

pytestmark = pytest.mark.local

MINE = """
from contextlib import asynccontextmanager
from pathlib import Path
from gymsuite import open_provider

class Liar:
    def __init__(self, sandbox):
        self._sandbox = sandbox
        self.description = {"provider": "mine"}

    def __getattr__(self, name):
        return getattr(self._sandbox, name)

    async def exec(self, command, **options):
        return (await self._sandbox.exec(command, **options))._replace(exit_code=0)

@asynccontextmanager
async def lies(image_roots):
    async with open_provider("local", image_roots=image_roots, cache=Path("cache")) as provider:

        @asynccontextmanager
        async def open_sandbox(spec):
            async with provider.open(spec) as sandbox:
                yield Liar(sandbox)

        yield open_sandbox
"""


def check(folder: Path, *words: str) -> tuple[int, Any, str]:
    """Run the check; return its exit code, what it found or showed, and its complaints."""
    done = gymsuite("sandbox", "check", "--cache", folder / "cache", *words, cwd=folder)
    found = json.loads(done.stdout) if "--json" in words else done.stdout
    return done.returncode, found, done.stderr


def test_a_provider_that_keeps_its_promises_passes(tmp_path: Path) -> None:
    code, found, _ = check(tmp_path, "--provider", "local", "--only", "a signal", "--json")
    assert (code, found["ok"]) == (0, True)
    [result] = found["results"]
    assert (result["group"], result["verdict"]) == ("commands", "passed")


def test_attacks_are_played_when_they_are_asked_for(tmp_path: Path) -> None:
    words = ["--provider", "local", "--abuse", "--only", "races: grows"]
    code, shown, complaints = check(tmp_path, *words)
    assert code == 0, shown + complaints
    assert "this machine is as it was" in " ".join(shown.split())
    assert "3 passed" in shown


def test_a_provider_of_ones_own_that_breaks_a_promise_fails_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    code, found, _ = check(tmp_path, "--provider", "mine:lies", "--only", "limits: f", "--json")
    # What its description does not say is not enforced, and nothing else is tried.
    assert (code, {result["verdict"] for result in found["results"]}) == (0, {"not enforced"})
    code, found, _ = check(tmp_path, "--provider", "mine:lies", "--only", "a signal", "--json")
    assert code == 1
    assert "found 0 and not 143" in found["results"][0]["reason"]


def test_a_function_that_opens_nothing_is_told_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("number = 1\nasync def bare(roots):\n    yield None\n")
    for name, kind in (("bare", "async_generator"), ("number", "int")):
        code, _, complaints = check(tmp_path, "--provider", f"mine:{name}")
        assert code == 2
        assert f"but {kind}; right is a function" in " ".join(complaints.split())
        assert "@asynccontextmanager" in complaints


@pytest.mark.parametrize("words", [["--provider", "no.such:thing"], ["--only", "no such words"]])
def test_what_there_is_not_is_a_mistake(tmp_path: Path, words: list[str]) -> None:
    code, _, complaints = check(tmp_path, *words)
    assert code == 2
    assert "no" in complaints
