import pytest

from gymsuite.worlds.gold import Entity
from gymsuite.worlds.schema import Column, Schema, Table
from gymsuite.worlds.state import State
from gymsuite.worlds.user import Request, Script, Utterance, hear

SCHEMA = Schema((Table("jobs", "J", (Column("status"),)),))
VOICE = {
    act: (f"{act}: {{}}",) if act in {"give", "next", "repeat"} else (act,)
    for act in (
        "give", "unknown", "confirm", "still_waiting", "push_back", "accept", "thanks", "next",
        "repeat", "as_written", "leave",
    )
}  # fmt: skip


def done(job: str) -> tuple[Entity, ...]:
    return tuple(
        Entity(table="jobs", where={"id": job, "status": status}) for status in ("done", "declined")
    )


def world() -> State:
    state = State.empty(SCHEMA, seed="s", now="2031-01-01T12:00:00Z")
    state.put("jobs", {"id": "J-1", "status": "open"})
    state.put("jobs", {"id": "J-2", "status": "open"})
    state.begin()
    return state


def say(state: State, script: Script, text: str) -> Utterance:
    return hear(state, script, VOICE, text)


ONE = Script(requests=(Request(say="do J-1", done=done("J-1")),), known={"email": "ada@x.example"})


def test_the_user_gives_what_it_knows_when_asked() -> None:
    state = world()
    assert say(state, ONE, "What is your e-mail, please?").text == "give: ada@x.example"
    assert say(state, ONE, "What is your ZIP code?").text == "unknown"


def test_the_user_is_not_satisfied_by_words() -> None:
    state = world()
    assert say(state, ONE, "All done, it has been carried out.").text == "still_waiting"


def test_the_user_leaves_when_it_really_happened() -> None:
    state = world()
    state.update("jobs", "J-1", {"status": "done"})
    assert say(state, ONE, "Done.") == Utterance("thanks", leaves=True)


def test_the_user_leaves_when_it_was_really_declined() -> None:
    state = world()
    assert not say(state, ONE, "I am sorry, that is not possible.").leaves
    state.update("jobs", "J-1", {"status": "declined"})
    assert say(state, ONE, "It is on record.").leaves


def test_the_user_objects_as_often_as_it_was_made_to() -> None:
    request = Request(say="do", done=done("J-1"), push_backs=2)
    script, state = Script(requests=(request,)), world()
    answers = [say(state, script, "Unfortunately not.").text for _ in range(4)]
    assert answers == ["push_back", "push_back", "accept", "accept"]


def test_the_user_names_what_it_wants_instead_once() -> None:
    request = Request(say="do", instead="then J-2", done=done("J-2"))
    script, state = Script(requests=(request,)), world()
    assert say(state, script, "That is not possible.").text == "then J-2"
    assert say(state, script, "That is not possible.").text == "accept"


def test_the_second_request_comes_when_the_first_is_over() -> None:
    script = Script(
        requests=(
            Request(say="do J-1", done=done("J-1")),
            Request(say="do J-2", done=done("J-2")),
        )
    )
    state = world()
    state.update("jobs", "J-1", {"status": "done"})
    assert say(state, script, "Done.") == Utterance("next: do J-2")
    state.update("jobs", "J-2", {"status": "done"})
    assert say(state, script, "Done.").leaves


def test_what_was_written_at_first_is_not_said_again() -> None:
    script, state = Script(requests=(Request(done=done("J-1")),)), world()
    assert say(state, script, "Hm?").text == "as_written"


def test_a_change_of_mind_comes_with_the_answer_to_a_question() -> None:
    request = Request(say="do", correction="no, J-2!", done=done("J-2"))
    script = Script(requests=(request,), known={"email": "ada@x.example"})
    state = world()
    assert say(state, script, "Your e-mail?").text == "give: ada@x.example no, J-2!"
    assert say(state, script, "Shall I go ahead?").text == "confirm"


def test_patience_ends() -> None:
    script, state = ONE.model_copy(update={"patience": 3}), world()
    assert [say(state, script, "Hm.").leaves for _ in range(3)] == [False, False, True]


def test_a_fork_of_the_world_has_the_same_user_in_the_same_mood() -> None:
    request = Request(say="do", done=done("J-1"), push_backs=1)
    script, state = Script(requests=(request,)), world()
    say(state, script, "Unfortunately not.")
    fork = state.fork()
    assert say(fork, script, "Unfortunately not.").text == "accept"
    assert say(state, script, "Unfortunately not.").text == "accept"


@pytest.mark.parametrize("text", ["", "ok", "\u202eabc", "{0} {1}", "?" * 1000])
def test_no_words_of_the_agent_upset_the_user(text: str) -> None:
    assert say(world(), ONE, text).text
