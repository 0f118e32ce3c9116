import asyncio
from itertools import combinations
from typing import Any

import pytest

from gymsuite import Episode, Message, Task, ToolCall
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.replay import no_sandbox
from tests.tool_worlds import SPLITS, ToolWorld, load


@pytest.fixture(scope="module")
def shop() -> ToolWorld:
    return load("tools/shop-v1")


def texts(task: Task) -> str:
    return task.prompt.rsplit("# The customer writes", 1)[-1]


def test_no_two_of_many_tasks_begin_in_the_same_hour(shop: ToolWorld) -> None:
    moment = shop.part("tasks").moment_of
    for split in SPLITS:
        assert len({moment(split, index) for index in range(16_000)}) == 16_000


def test_splits_share_no_customer_no_policy_and_no_wording(shop: ToolWorld) -> None:
    people, policies = {}, {}
    for split in SPLITS:
        some = shop.tasks(split, 40)
        people[split] = {
            word
            for task in some
            for entry in task.hidden["start"]["rows"]
            if entry["table"] == "customers"
            for word in entry["row"]["name"].split()
        }
        policies[split] = {task.metadata["policy"]["return_days"] for task in some}
    phrases = shop.part("phrases")
    for one, other in combinations(SPLITS, 2):
        assert not people[one] & people[other]
        assert not policies[one] & policies[other]
        for act, ways in phrases.VOICES[one].items():
            assert not set(ways) & set(phrases.VOICES[other][act])


def test_the_policys_text_has_a_clause_for_every_rule_that_decides(shop: ToolWorld) -> None:
    rules = shop.part("rules")
    prompt = shop.tasks("train", 1)[0].prompt
    for rule in rules.RULES:
        assert f": {rule.reason})" in prompt


def test_the_parameters_in_the_text_are_those_that_decide(shop: ToolWorld) -> None:
    for task in shop.tasks("val", 5):
        days = task.metadata["policy"]["return_days"]
        assert f"returned up to {days} days after delivery" in task.prompt


@pytest.mark.parametrize(
    ("family", "look"),
    [
        ("coupon/coupon_expired", "get_coupon"),
        ("exchange/out_of_stock", "get_product"),
        ("change_flight/no_seats", "search_flights"),
    ],
)
def test_what_a_refusal_is_about_has_to_be_looked_at(
    shop: ToolWorld, family: str, look: str
) -> None:
    tasks = shop.environment.tasks
    assert isinstance(tasks, Procedural)
    some = (tasks.at("train", index) for index in range(2, 1000, 5))
    task = next(task for task in some if task.metadata["family"] == family)
    blind = [call for call in task.solution if call.name != look]
    assert shop.score(task, task.solution).passed
    assert shop.score(task, blind).reward == 0


def test_plain_text_reaches_the_customer_as_the_tool_does(shop: ToolWorld) -> None:
    task = next(task for task in shop.tasks("train", 40) if task.level == 3)
    question = "Please give me your e-mail address."

    call = ToolCall(name="tell_customer", arguments={"text": question})
    by_tool = shop.reply(task, Message(role="assistant", tool_calls=(call,)))
    by_text = shop.reply(task, Message(role="assistant", content=question))
    assert by_tool == by_text
    assert "@" in by_text


def test_an_episode_ends_when_the_customer_leaves(shop: ToolWorld) -> None:
    task = shop.tasks("train", 1)[0]

    async def run() -> tuple[bool, float]:
        async with Episode(shop.environment, no_sandbox) as episode:
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
def test_a_mistake_is_explained_and_the_episode_goes_on(shop: ToolWorld, mistake: str) -> None:
    name, arguments, explanation = MISTAKES[mistake]
    task = shop.tasks("train", 2)[1]
    assert explanation in shop.complaint(task, name, arguments)


def test_a_failed_write_leaves_nothing_behind(shop: ToolWorld) -> None:
    task = next(t for t in shop.tasks("train", 60) if t.metadata["family"] == "cancel_order")
    cancel = next(c for c in task.solution if c.name == "cancel_order")
    foreign = next(
        entry["row"]["id"]
        for entry in task.hidden["start"]["rows"]
        if entry["table"] == "payment_methods"
        and entry["row"]["customer_id"] != task.solution[1].arguments["customer_id"]
    )
    wrong = cancel.model_copy(update={"arguments": {**cancel.arguments, "payment_id": foreign}})
    score = shop.score(task, (wrong, *task.solution))
    assert score.passed


def test_a_call_after_the_end_is_not_run(shop: ToolWorld) -> None:
    task = shop.tasks("train", 1)[0]
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
        async with Episode(shop.environment, no_sandbox) as episode:
            await episode.reset(task, 0)
            step = await episode.step(Message(role="assistant", tool_calls=(*task.solution, late)))
            assert "over" in step.observation.messages[-1].text
            assert step.reward == 1

    asyncio.run(run())


def test_words_from_right_to_left_are_only_words(shop: ToolWorld) -> None:
    task = shop.tasks("train", 1)[0]
    call = ToolCall(name="tell_customer", arguments={"text": "\u202e שלום \u202c"})
    assert shop.score(task, (call, *task.solution)).passed
