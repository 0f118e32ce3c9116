import asyncio
import importlib
import re
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gymsuite import Environment, Episode, Message, Task, ToolCall
from gymsuite.registry import Registry
from gymsuite.suite import suite_root
from gymsuite.worlds import baselines
from gymsuite.worlds.gate import check, play
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.replay import Source, differing, no_sandbox

SPLITS = ("train", "val", "test-iid", "test-ood")
REGISTRY = suite_root() / "registry.yaml"


@pytest.fixture(scope="module")
def shop() -> Environment:
    return Registry(REGISTRY).load("tools/shop-v1")


def part(name: str) -> ModuleType:
    package = next(m for m in sys.modules if re.fullmatch(r"_gymsuite_tools_shop_v1_\w+", m))
    return importlib.import_module(f"{package}.{name}")


def tasks(shop: Environment, split: str, count: int) -> list[Task]:
    assert isinstance(shop.tasks, Procedural)
    return [shop.tasks.at(split, index) for index in range(count)]


def texts(task: Task) -> str:
    return task.prompt.rsplit("# The customer writes", 1)[-1]


@pytest.mark.parametrize("split", SPLITS)
def test_the_gate_lets_every_family_through(shop: Environment, split: str) -> None:
    gate = part("gate").GATE

    async def run() -> list[Any]:
        return [
            finding
            for task in tasks(shop, split, 15)
            for finding in await check(shop, gate, task, no_sandbox)
        ]

    assert asyncio.run(run()) == []


def test_tasks_are_the_same_in_another_process_zone_and_locale(shop: Environment) -> None:
    numbers = (0, 3, 204, 401, 602)
    assert differing(Source(REGISTRY, "tools/shop-v1", None, Path()), numbers) == ()


def test_no_two_of_many_tasks_begin_in_the_same_hour(shop: Environment) -> None:
    assert shop.tools
    moment = part("tasks").moment_of
    for split in SPLITS:
        assert len({moment(split, index) for index in range(16_000)}) == 16_000


def test_no_two_tasks_have_the_same_prompt(shop: Environment) -> None:
    prompts = [task.prompt for split in SPLITS for task in tasks(shop, split, 60)]
    assert len(set(prompts)) == len(prompts)


def test_splits_share_no_customer_no_policy_and_no_wording(shop: Environment) -> None:
    people, policies = {}, {}
    for split in SPLITS:
        some = tasks(shop, split, 40)
        people[split] = {
            word
            for task in some
            for entry in task.hidden["start"]["rows"]
            if entry["table"] == "customers"
            for word in entry["row"]["name"].split()
        }
        policies[split] = {task.metadata["policy"]["return_days"] for task in some}
    phrases = part("phrases")
    for one, other in combinations(SPLITS, 2):
        assert not people[one] & people[other]
        assert not policies[one] & policies[other]
        for act, ways in phrases.VOICES[one].items():
            assert not set(ways) & set(phrases.VOICES[other][act])


def test_doing_nothing_and_noise_are_worth_nothing_and_the_solution_everything(
    shop: Environment,
) -> None:
    some = tasks(shop, "train", 50)
    nothing = asyncio.run(baselines.success(shop, some, baselines.noop, no_sandbox))
    noise = asyncio.run(baselines.success(shop, some, baselines.random_player, no_sandbox))
    everything = asyncio.run(baselines.success(shop, some, baselines.oracle, no_sandbox))
    assert set(nothing.values()) == set(noise.values()) == {0}
    assert set(everything.values()) == {1}


def test_doing_the_obvious_is_not_enough_from_level_three_up(shop: Environment) -> None:
    some = tasks(shop, "train", 100)
    shares = asyncio.run(baselines.success(shop, some, part("greedy").greedy, no_sandbox))
    assert shares[1] > 0.5
    assert all(shares[level] < 0.5 for level in (3, 4, 5))


def test_the_policys_text_has_a_clause_for_every_rule_that_decides(shop: Environment) -> None:
    rules = part("rules")
    prompt = tasks(shop, "train", 1)[0].prompt
    for rule in rules.RULES:
        assert f": {rule.reason})" in prompt


def test_the_parameters_in_the_text_are_those_that_decide(shop: Environment) -> None:
    for task in tasks(shop, "val", 5):
        days = task.metadata["policy"]["return_days"]
        assert f"returned up to {days} days after delivery" in task.prompt


def test_plain_text_reaches_the_customer_as_the_tool_does(shop: Environment) -> None:
    task = next(task for task in tasks(shop, "train", 40) if task.level == 3)
    question = "Please give me your e-mail address."

    async def answer(action: Message) -> str:
        async with Episode(shop, no_sandbox) as episode:
            await episode.reset(task, 0)
            return (await episode.step(action)).observation.messages[0].text

    call = ToolCall(name="tell_customer", arguments={"text": question})
    by_tool = asyncio.run(answer(Message(role="assistant", tool_calls=(call,))))
    by_text = asyncio.run(answer(Message(role="assistant", content=question)))
    assert by_tool == by_text
    assert "@" in by_text


def test_an_episode_ends_when_the_customer_leaves(shop: Environment) -> None:
    task = tasks(shop, "train", 1)[0]

    async def run() -> tuple[bool, float]:
        async with Episode(shop, no_sandbox) as episode:
            await episode.reset(task, 0)
            step = await episode.step(
                Message(role="assistant", tool_calls=tuple(task.solution[:-1]))
            )
            assert not step.terminated
            step = await episode.step(
                Message(role="assistant", content=task.solution[-1].arguments["text"])
            )
            return step.terminated, step.reward

    assert asyncio.run(run()) == (True, 1.0)


def test_a_stored_submission_scores_the_same_again(shop: Environment) -> None:
    task = tasks(shop, "train", 4)[3]

    async def run() -> None:
        async with Episode(shop, no_sandbox) as episode:
            await episode.reset(task, 0)
            await episode.step(Message(role="assistant", tool_calls=task.solution))
            assert episode.submission is not None
            assert await shop.verify(task, episode.submission, no_sandbox) == episode.score

    asyncio.run(run())


ORDER = {"order_id": "ORD-0000000", "code": "X", "discount_cents": 1}
MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown tool": ("fly_to_the_moon", {}, "no tool"),
    "words for a number": ("apply_coupon", ORDER | {"discount_cents": "12"}, "discount_cents"),
    "truth for a number": ("apply_coupon", ORDER | {"discount_cents": True}, "discount_cents"),
    "a fraction of a cent": ("apply_coupon", ORDER | {"discount_cents": 1.5}, "discount_cents"),
    "not a number": ("apply_coupon", ORDER | {"discount_cents": float("nan")}, "discount_cents"),
    "too much money": ("apply_coupon", ORDER | {"discount_cents": 10**30}, "discount_cents"),
    "a number for words": ("search_products", {"words": 7}, "words"),
    "nothing for words": ("search_products", {"words": None}, "words"),
    "a list for words": ("search_products", {"words": ["a"]}, "words"),
    "a missing argument": ("get_order", {}, "order_id"),
    "an extra argument": ("get_order", {"order_id": "ORD-1", "verbose": True}, "verbose"),
    "no such row": ("get_order", {"order_id": "ORD-0000000"}, "look the id up"),
    "a row of another table": ("get_order", {"order_id": "CUS-0000000"}, "look the id up"),
    "no such choice": (
        "decline_request",
        {"subject_id": "ORD-1", "request": "marriage", "reason": "not_late"},
        "request",
    ),
    "a megabyte": ("search_products", {"words": "x" * (1 << 20)}, "at most"),
    "a long id": ("get_order", {"order_id": "x" * 5000}, "at most"),
    "a NUL": ("search_products", {"words": "a\0b"}, "NUL"),
    "a NUL in an id": ("get_order", {"order_id": "a\0b"}, "NUL"),
    "right to left": ("get_order", {"order_id": "\u202eORD-1\u202c"}, "look the id up"),
    "SQL": ("get_order", {"order_id": "'; DROP TABLE orders; --"}, "look the id up"),
    "a sum of words": ("calculate", {"expression": "__import__('os')"}, "not a sum"),
    "a tower of powers": ("calculate", {"expression": "9**9**9"}, "not a sum"),
    "a division by nothing": ("calculate", {"expression": "1//0"}, "not a sum"),
    "a deep sum": ("calculate", {"expression": "(" * 5000}, "at most"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained_and_the_episode_goes_on(shop: Environment, mistake: str) -> None:
    name, arguments, explanation = MISTAKES[mistake]
    task = tasks(shop, "train", 2)[1]

    async def run() -> None:
        async with Episode(shop, no_sandbox) as episode:
            await episode.reset(task, 0)
            call = ToolCall(id="x", name=name, arguments=arguments)
            step = await episode.step(Message(role="assistant", tool_calls=(call,)))
            reply = step.observation.messages[0].text
            assert reply.startswith("error: ")
            assert explanation in reply
            assert len(reply) < 2000
            step = await episode.step(Message(role="assistant", tool_calls=task.solution))
            assert (step.terminated, step.reward) == (True, 1.0)

    asyncio.run(run())


def test_a_failed_write_leaves_nothing_behind(shop: Environment) -> None:
    task = next(t for t in tasks(shop, "train", 60) if t.metadata["family"] == "cancel_order")
    cancel = next(c for c in task.solution if c.name == "cancel_order")
    foreign = next(
        entry["row"]["id"]
        for entry in task.hidden["start"]["rows"]
        if entry["table"] == "payment_methods"
        and entry["row"]["customer_id"] != task.solution[1].arguments["customer_id"]
    )
    wrong = cancel.model_copy(update={"arguments": {**cancel.arguments, "payment_id": foreign}})
    score = asyncio.run(play(shop, task, (wrong, *task.solution), no_sandbox))
    assert score.passed


def test_a_hundred_parallel_calls_all_get_an_answer(shop: Environment) -> None:
    task = tasks(shop, "train", 1)[0]
    calls = tuple(
        ToolCall(id=str(n), name="search_products", arguments={"words": str(n)}) for n in range(100)
    )

    async def run() -> None:
        async with Episode(shop, no_sandbox) as episode:
            await episode.reset(task, 0)
            step = await episode.step(Message(role="assistant", tool_calls=calls))
            assert [m.tool_call_id for m in step.observation.messages] == [c.id for c in calls]
            assert not step.terminated

    asyncio.run(run())


def test_a_call_after_the_end_is_not_run(shop: Environment) -> None:
    task = tasks(shop, "train", 1)[0]
    late = ToolCall(
        id="late",
        name="add_address",
        arguments={
            "customer_id": task.solution[1].arguments["customer_id"],
            "street": "1 Late Lane",
            "city": "X",
            "country": "Y",
        },
    )

    async def run() -> None:
        async with Episode(shop, no_sandbox) as episode:
            await episode.reset(task, 0)
            step = await episode.step(Message(role="assistant", tool_calls=(*task.solution, late)))
            assert "over" in step.observation.messages[-1].text
            assert step.reward == 1

    asyncio.run(run())


def test_words_from_right_to_left_are_only_words(shop: Environment) -> None:
    task = tasks(shop, "train", 1)[0]
    call = ToolCall(name="tell_customer", arguments={"text": "\u202e שלום \u202c"})
    assert asyncio.run(play(shop, task, (call, *task.solution), no_sandbox)).passed
