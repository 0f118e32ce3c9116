"""The suite for providers tells kept from broken, and a declared gap from either."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gymsuite import OpenSandbox, Sandbox, SandboxSpec
from gymsuite.errors import SandboxDead
from gymsuite.sandbox.conformance import CASES, Case, Verdict, run, write_recipe
from gymsuite.sandbox.conformance.abuse import ATTACKS
from gymsuite.sandbox.conformance.abuse.table import PROVIDERS, render
from gymsuite.sandbox.conformance.case import NotKept, NotOffered, inside
from gymsuite.sandbox.dockerfile import parse

PAGE = Path(__file__).parents[2] / "docs/sandboxes.md"
SPEC = SandboxSpec(image="any")
NONE: Mapping[str, object] = {"network": "none", "pids": 9, "memory_bytes": None}


def opening(limits: object) -> OpenSandbox:
    @asynccontextmanager
    async def open_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        yield cast("Sandbox", SimpleNamespace(description={"limits": limits}))

    return open_sandbox


def verdict(body: Callable[[Sandbox], Awaitable[None]], *needs: str, limits: object = NONE) -> Any:
    [result] = asyncio.run(run(opening(limits), SPEC, cases=[inside("group", body, needs=needs)]))
    return result.verdict, result.reason


async def kept(sandbox: Sandbox) -> None:
    assert sandbox.description


async def broken(sandbox: Sandbox) -> None:
    raise NotKept("found 1 and not 2")


async def lost(sandbox: Sandbox) -> None:
    raise SandboxDead("out of luck")


async def unable(sandbox: Sandbox) -> None:
    raise NotOffered("it cannot")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (kept, (Verdict.PASSED, "")),
        (broken, (Verdict.FAILED, "found 1 and not 2")),
        (lost, (Verdict.FAILED, "SandboxDead: out of luck")),
        (unable, (Verdict.NOT_OFFERED, "it cannot")),
    ],
)
def test_a_case_is_judged_by_what_it_raises(
    body: Callable[[Sandbox], Awaitable[None]], expected: object
) -> None:
    assert verdict(body) == expected


@pytest.mark.parametrize("limits", [NONE, {}, None, {"network": "open", "memory_bytes": None}])
def test_a_limit_that_is_not_declared_is_never_passed(limits: object) -> None:
    told, reason = verdict(kept, "memory_bytes", limits=limits)
    assert told == Verdict.NOT_ENFORCED
    assert "memory_bytes" in reason


def test_a_limit_that_is_declared_has_to_hold() -> None:
    assert verdict(broken, "network", "pids")[0] == Verdict.FAILED
    assert verdict(kept, "network", limits={"network": "host"})[0] == Verdict.NOT_ENFORCED


def test_every_promise_and_every_attack_has_a_name_of_its_own() -> None:
    for names in ([case.name for case in CASES], [attack.name for attack in ATTACKS]):
        assert len(set(names)) == len(names)
        assert not [name for name in names if "|" in name or not name[0].islower()]


def test_the_groups_are_those_of_the_protocol() -> None:
    assert list(dict.fromkeys(case.group for case in CASES)) == [
        "commands", "streams", "processes", "users", "files", "transfer", "changes", "snapshot",
        "limits", "isolation", "loss",
    ]  # fmt: skip


def test_the_recipe_is_one_that_can_be_built(tmp_path: Path) -> None:
    write_recipe(tmp_path)
    for base in ("host", "debian"):
        recipe = parse(tmp_path / "conformance/Dockerfile", {"BASE": base})
        assert recipe.base == base


def test_the_page_shows_the_attacks_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition("<!-- attacks:")[2].partition("-->\n")[2]
    assert shown.partition("<!-- end of attacks -->")[0] == render(ATTACKS)


def test_who_differs_is_a_provider_of_ours_and_says_why() -> None:
    for attack in ATTACKS:
        assert set(attack.differs) <= set(PROVIDERS)
        assert all(attack.differs.values())


def test_a_case_of_its_own_runs_beside_the_others() -> None:
    async def body(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
        raise NotKept("never")

    [result] = asyncio.run(run(opening(NONE), SPEC, cases=[Case("mine", "holds", body)]))
    assert (result.group, result.name, result.verdict) == ("mine", "holds", Verdict.FAILED)
