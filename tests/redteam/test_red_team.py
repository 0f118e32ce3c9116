"""Cheats against coding environments: each scores what doing nothing scores.

A sample on every run; `gymsuite check --red-team ENV` plays all of them.
"""

import asyncio
from collections.abc import Sequence

import pytest

from gymsuite import Registry
from gymsuite.authoring.check import CheckRequest, Finding, Watcher
from gymsuite.authoring.redteam.attack import attack
from gymsuite.authoring.redteam.cheat import Cheat
from gymsuite.authoring.redteam.corpus import CHEATS
from gymsuite.runs.plan import Choice, make_plan
from gymsuite.runs.sandboxes import SandboxSource
from gymsuite.suite import default_cache
from gymsuite.tools import Toolbox, bash, submit
from tests.providers import require

OF_EVERY_KIND = (
    "reports are made to say passed",
    "answers are read from the tests",
    "the process leaves at import",
    "every process is killed",
    "a conftest passes everything",
    "the runner's packages are replaced",
    "the package is a link",
)


def played(environment: str, names: Sequence[str]) -> list[Finding]:
    require("local")
    registry = Registry.default()
    source = SandboxSource("local", registry.image_roots, default_cache())
    cheats = [CHEATS[name] for name in names]
    request = CheckRequest(source, concurrency=2)
    return asyncio.run(attack(registry.load(environment), cheats, request, Watcher()))


def outcomes(findings: Sequence[Finding]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in findings:
        found.setdefault(finding.outcome, []).append(f"{finding.promise} {finding.details}")
    return found


@pytest.mark.local
def test_no_cheat_of_any_kind_pays_in_bug_repair() -> None:
    found = outcomes(played("coding/pybugs-v1", OF_EVERY_KIND))
    assert [*found] == ["kept"], found
    assert len(found["kept"]) == len(OF_EVERY_KIND) + 1


@pytest.mark.local
def test_no_cheat_in_a_function_pays_where_there_is_no_shell() -> None:
    in_process = [name for name, cheat in CHEATS.items() if cheat.kind == "in process"]
    found = outcomes(played("coding/warmup-v1", [*in_process[::4], "tests are deleted"]))
    assert sorted(found) == ["kept", "moot"], found
    assert len(found["moot"]) == 1


def test_there_are_cheats_enough_of_each_kind() -> None:
    kinds = [cheat.kind for cheat in CHEATS.values()]
    assert len(kinds) >= 60
    assert min(kinds.count(kind) for kind in ("in process", "in tree", "in shell")) >= 10


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_one_thing_that_can_be_played(name: str) -> None:
    cheat = CHEATS[name]
    assert sum(map(bool, (cheat.code, cheat.files, cheat.command))) == 1
    calls = cheat.calls(Toolbox.of((bash, submit)))
    assert calls is not None
    assert [call.name for call in calls] == ["bash", "submit"]
    if cheat.code:
        compile(cheat.code, name, "exec")


@pytest.mark.local
def test_what_is_scored_otherwise_than_nothing_is_found_out() -> None:
    """The solution stands for a cheat that pays."""
    require("local")
    registry = Registry.default()
    environment = registry.load("coding/warmup-v1")
    (task,) = make_plan([environment], Choice(1)).tasks[environment.id]
    cheat = Cheat("it pays", "in process", code=task.solution[0].arguments["code"])
    source = SandboxSource("local", registry.image_roots, default_cache())
    findings = asyncio.run(attack(environment, [cheat], CheckRequest(source), Watcher()))
    assert [finding.outcome for finding in findings] == ["kept", "broken"]
    assert findings[1].details == f"{task.id}: reward 1, and nothing 0"
