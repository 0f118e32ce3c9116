"""What every world of tools promises."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Episode, Message, ToolCall
from gymsuite.worlds import baselines
from gymsuite.worlds.gate import check
from gymsuite.worlds.replay import Source, differing, no_sandbox
from tests.tool_worlds import REGISTRY, SPLITS, ToolWorld, load


@pytest.fixture(scope="module", params=["tools/shop-v1", "tools/office-v1", "tools/tables-v1"])
def world(request: pytest.FixtureRequest) -> ToolWorld:
    return load(request.param)


@pytest.mark.parametrize("split", SPLITS)
def test_the_gate_lets_every_family_through(world: ToolWorld, split: str) -> None:
    gate = world.part("gate").GATE

    async def run() -> list[Any]:
        return [
            finding
            for task in world.tasks(split, 15)
            for finding in await check(world.environment, gate, task, no_sandbox)
        ]

    assert asyncio.run(run()) == []


def test_tasks_are_the_same_in_another_process_zone_and_locale(world: ToolWorld) -> None:
    source = Source(REGISTRY, world.name, None, Path())
    assert differing(source, (0, 3, 204, 401, 603)) == ()


def test_no_two_tasks_have_the_same_prompt(world: ToolWorld) -> None:
    prompts = [task.prompt for split in SPLITS for task in world.tasks(split, 60)]
    assert len(set(prompts)) == len(prompts)


def test_doing_nothing_and_noise_are_worth_nothing_and_the_solution_everything(
    world: ToolWorld,
) -> None:
    some = world.tasks("train", 50)
    shares = {
        player: asyncio.run(baselines.success(world.environment, some, player, no_sandbox))
        for player in (baselines.noop, baselines.random_player, baselines.oracle)
    }
    assert set(shares[baselines.noop].values()) == {0}
    assert set(shares[baselines.random_player].values()) == {0}
    assert set(shares[baselines.oracle].values()) == {1}


def test_doing_the_obvious_is_not_enough_from_level_three_up(world: ToolWorld) -> None:
    greedy = world.part("greedy").greedy
    some = world.tasks("train", 100)
    shares = asyncio.run(baselines.success(world.environment, some, greedy, no_sandbox))
    assert min(shares[1], shares[2]) > 0.5
    assert max(shares[3], shares[4], shares[5]) < 0.5


def test_a_hundred_parallel_calls_all_get_an_answer(world: ToolWorld) -> None:
    task = world.tasks("train", 1)[0]
    look = next(c for c in task.solution if c.name in {t.__name__ for t in world.environment.tools})
    calls = tuple(look.model_copy(update={"id": str(number)}) for number in range(100))

    async def run() -> None:
        async with Episode(world.environment, no_sandbox) as episode:
            await episode.reset(task, 0)
            step = await episode.step(Message(role="assistant", tool_calls=calls))
            assert [m.tool_call_id for m in step.observation.messages] == [c.id for c in calls]
            assert not step.terminated

    asyncio.run(run())


def test_a_stored_submission_scores_the_same_again(world: ToolWorld) -> None:
    task = world.tasks("train", 4)[3]
    plan = (*task.solution, ToolCall(name="submit"))

    async def run() -> None:
        async with Episode(world.environment, no_sandbox) as episode:
            await episode.reset(task, 0)
            await episode.step(Message(role="assistant", tool_calls=plan))
            assert episode.submission is not None
            again = await world.environment.verifier(task, episode.submission, no_sandbox)
            assert again == episode.score

    asyncio.run(run())


BOUNDS = {
    "string": {"maxLength", "enum", "const"},
    "integer": {"maximum", "enum"},
    "array": {"maxItems"},
}


def unbounded(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    """The places of a JSON schema at which an argument may be as large as one likes."""
    if bounds := BOUNDS.get(schema.get("type", "")):
        if not schema.keys() & bounds:
            yield where
    elif not schema.keys() & {"anyOf", "$ref", "enum", "const", "properties"}:
        yield where
    for part in schema.get("anyOf", ()):
        yield from unbounded(part, where)
    if "items" in schema:
        yield from unbounded(schema["items"], f"{where}[]")
    for name, part in schema.get("properties", {}).items():
        yield from unbounded(part, f"{where}.{name}")


def test_no_argument_is_without_bounds(world: ToolWorld) -> None:
    schemas = {tool.name: tool.parameters for tool in world.environment.toolbox.schemas}
    assert len(schemas) > 5
    assert [
        place
        for name, schema in schemas.items()
        if name != "submit"
        for place in unbounded(schema, name)
    ] == []
