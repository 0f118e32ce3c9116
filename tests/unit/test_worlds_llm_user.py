import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gymsuite import Episode, Message, Registry, Task, ToolCall, UsageError, rollout
from gymsuite.errors import UserFault
from gymsuite.suite import suite_root
from gymsuite.types import Rollout
from gymsuite.worlds.audit import unfounded
from gymsuite.worlds.baselines import oracle
from gymsuite.worlds.replay import no_sandbox
from tests.stub_model import Answer, StubModel, completion, serve

LEAD = "The customer says: "
ASK = "Could you give me your e-mail address, please?"


def shop(model: StubModel, **options: str) -> Registry:
    chosen = {"user_url": model.base_url, "user_model": "stub", **options}
    return Registry(suite_root() / "registry.yaml").with_options(chosen)


def saying(*words: str) -> Answer:
    """Answers with these words, the last of them ever again."""
    return lambda _, number: completion(words[min(number, len(words) - 1)])


def talk(answer: Answer, *actions: Message, task: int = 0) -> tuple[list[str], StubModel]:
    """What the agent hears when it does this."""
    with serve(answer) as model:
        environment = shop(model).load("tools/shop-v1")

        async def main() -> list[str]:
            heard = []
            async with Episode(environment, no_sandbox) as episode:
                await episode.reset(environment.tasks[task], 0)
                for action in actions:
                    step = await episode.step(action)
                    heard += [message.text for message in step.observation.messages]
            return heard

        return asyncio.run(main()), model


def by_tool(text: str) -> Message:
    call = ToolCall(id="1", name="tell_customer", arguments={"text": text})
    return Message(role="assistant", tool_calls=(call,))


def in_text(text: str) -> Message:
    return Message(role="assistant", content=text)


def known(task: Task) -> dict[str, str]:
    found: dict[str, str] = task.hidden["user"]["known"]
    return found


@pytest.mark.parametrize("way", [by_tool, in_text])
def test_the_agent_hears_the_models_words(way: Callable[[str], Message]) -> None:
    heard, model = talk(saying("why do you need that?"), way(ASK))
    assert heard == [f"{LEAD}why do you need that?"]
    assert len(model.requests) == 1


def test_the_model_sees_wishes_knowledge_and_talk_but_nothing_of_the_world() -> None:
    _, model = talk(saying("one moment", "yes"), by_tool(ASK), in_text("Are you there?"))
    task = Registry(suite_root() / "registry.yaml").load("tools/shop-v1").tasks[0]
    system, _, opening, *said = model.requests[-1].body["messages"]
    assert task.prompt.endswith(opening["content"])
    assert known(task)["email"] in system["content"]
    assert [message["content"] for message in said] == [ASK, "one moment", "Are you there?"]
    assert "# Policy" not in str(model.requests[-1].body)
    assert str(task.hidden["gold"]["reads"][0][0]) not in str(model.requests[-1].body)


def test_what_the_user_knows_it_may_say() -> None:
    task = Registry(suite_root() / "registry.yaml").load("tools/shop-v1").tasks[0]
    words = f"sure, it is {known(task)['email'].upper()}."
    assert talk(saying(words), by_tool(ASK))[0] == [LEAD + words]


@pytest.mark.parametrize(
    "words",
    [
        "it is somebody.else@example.test",
        "my order is ORD-1234567",
        "it was about 419 dollars",
        "you have talked to Bartholomew before",
        "please " * 200,
    ],
)
def test_a_user_that_falls_out_of_its_role_leaves_no_score(words: str) -> None:
    with serve(saying(words)) as model:
        environment = shop(model).load("tools/shop-v1")
        # One whose solution begins with a question to the customer.
        task = next(t for t in environment.tasks if t.solution[0].name == "tell_customer")
        record = asyncio.run(rollout(environment, task, oracle, no_sandbox))
    assert isinstance(record, Rollout)
    assert record.score is None
    assert record.failure is not None
    assert (record.failure.kind, record.failure.retryable) == ("user", True)
    assert "simulated user" in record.failure.message


def test_a_fault_in_plain_text_is_raised_as_one() -> None:
    with pytest.raises(UserFault, match="ORD-1"):
        talk(saying("it is ORD-1"), in_text(ASK))


def test_a_model_that_says_nothing_twice_leaves_the_automaton_its_words() -> None:
    task = Registry(suite_root() / "registry.yaml").load("tools/shop-v1").tasks[0]
    heard, model = talk(saying("", " \n"), by_tool(ASK))
    assert len(model.requests) == 2
    assert known(task)["email"] in heard[0]
    heard, model = talk(saying("", "hello"), by_tool(ASK))
    assert heard == [f"{LEAD}hello"]


def test_a_model_that_runs_out_of_tokens_has_said_nothing() -> None:
    task = Registry(suite_root() / "registry.yaml").load("tools/shop-v1").tasks[0]
    heard, _ = talk(lambda *_: completion(None, finish_reason="length"), by_tool(ASK))
    assert known(task)["email"] in heard[0]


def test_only_the_books_end_the_conversation() -> None:
    heard, _ = talk(saying("thanks, bye, I am done"), by_tool("All done."), by_tool("Really."))
    assert len(heard) == 2
    assert "[the customer has left]" not in "".join(heard)


def test_the_oracle_still_solves_every_task_with_a_model_as_user() -> None:
    with serve(saying("please go on")) as model:
        environment = shop(model).load("tools/shop-v1")
        for task in environment.tasks[:10]:
            record = asyncio.run(rollout(environment, task, oracle, no_sandbox))
            assert record.score is not None
            assert record.score.passed, (task.id, record.score.details)


def test_forks_go_on_with_talks_of_their_own() -> None:
    with serve(saying("first", "second", "third")) as model:
        environment = shop(model).load("tools/shop-v1")

        async def main() -> None:
            async with Episode(environment, no_sandbox) as episode:
                await episode.reset(environment.tasks[0], 0)
                await episode.step(by_tool("One?"))
                (fork,) = await episode.fork(1)
                async with fork:
                    await fork.step(by_tool("Two?"))
                await episode.step(by_tool("Three?"))

        asyncio.run(main())
        last = [message["content"] for message in model.requests[-1].body["messages"][3:]]
    assert last == ["One?", "first", "Three?"]


def test_a_key_comes_from_a_file_and_is_sent(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("hunter2\n")
    with serve(saying("yes")) as model:
        environment = shop(model, user_key_file=str(key)).load("tools/shop-v1")

        async def main() -> None:
            async with Episode(environment, no_sandbox) as episode:
                await episode.reset(environment.tasks[0], 0)
                await episode.step(by_tool(ASK))

        asyncio.run(main())
        assert model.requests[0].headers["authorization"] == "Bearer hunter2"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"user_model": "m"}, "user_url"),
        ({"user_url": "http://localhost:1/v1"}, "user_model"),
        ({"user_model": "m", "user_url": "no address"}, "user_url"),
        (
            {"user_model": "m", "user_url": "http://x/v1", "user_key_file": "/no/such/file"},
            "user_key_file",
        ),
    ],
)
def test_a_user_that_is_named_halfway_is_explained(options: dict[str, str], complaint: str) -> None:
    registry = Registry(suite_root() / "registry.yaml").with_options(options)
    with pytest.raises(UsageError, match=complaint):
        registry.load("tools/shop-v1")


def test_without_options_the_user_is_scripted_and_its_tools_are_the_same() -> None:
    plain = Registry(suite_root() / "registry.yaml").load("tools/shop-v1")
    with serve(saying("hello")) as model:
        worded = shop(model).load("tools/shop-v1")
    assert plain.toolbox.schemas == worded.toolbox.schemas


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Yes, please. That is fine.", ()),
        ("It is ada@x.test.", ()),
        ("It is ADA@X.TEST, as I said", ()),
        ("It is bob@x.test", ("bob@x.test",)),
        ("Order 17 and order 18!", ("18",)),
        ("I paid $17.", ()),
        ("I, Ada, paid.", ()),
        ("I, Ada Lovelace, paid. Thanks!", ("Lovelace",)),
        ("117", ("117",)),
        ("Good day, Thanks - Please go on; Still here", ()),
    ],
)
def test_facts_need_a_source(text: str, found: tuple[str, ...]) -> None:
    assert unfounded(text, ("My e-mail is ada@x.test", "order 17", "Ada")) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("At 9:30, or 09:30.", ()),
        ("It was $1234.00, that is $1,234.00 or 1234 dollars.", ()),
        ("Fine \N{EM DASH} Great \N{WHITE HEAVY CHECK MARK} Perfect", ()),
        ("\N{EM DASH} Great", ()),
        ("\N{WHITE HEAVY CHECK MARK} Great, Ada & Bob", ("Ada", "Bob")),
        ("At 19:30, or 9:31.", ("19:30", "9:31")),
        ("It was $1,235.00, or 234.", ("1235.00", "234")),
    ],
)
def test_another_spelling_is_the_same_fact(text: str, found: tuple[str, ...]) -> None:
    assert unfounded(text, ("It is at 09:30 and costs $1,234.00.",)) == found
