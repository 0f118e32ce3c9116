import sqlite3

import pytest

from gymsuite.errors import DefinitionError
from gymsuite.worlds.draws import Draws, mint, scatter
from gymsuite.worlds.schema import Column, Schema, Table, normal
from gymsuite.worlds.state import Change, State

SCHEMA = Schema(
    (
        Table("people", "P", (Column("name", "casefold"), Column("money_cents", "cents"))),
        Table("notes", "N", (Column("person_id", ref="people"), Column("body", "text"))),
    )
)
NOON = "2031-05-04T12:00:00Z"


def world() -> State:
    state = State.empty(SCHEMA, seed="seed", now=NOON)
    state.put("people", {"id": "P-1", "name": "Ada", "money_cents": 100})
    state.put("people", {"id": "P-2", "name": "Ben", "money_cents": 200})
    state.begin()
    return state


def test_nothing_done_is_no_change() -> None:
    assert world().changes() == ()


def test_an_update_shows_only_what_differs() -> None:
    state = world()
    state.update("people", "P-1", {"name": "Ada", "money_cents": 150})
    assert state.changes() == (
        Change(
            table="people",
            id="P-1",
            op="update",
            before={"money_cents": 100},
            after={"money_cents": 150},
        ),
    )


def test_what_is_undone_is_no_change() -> None:
    state = world()
    state.update("people", "P-1", {"money_cents": 150})
    state.update("people", "P-1", {"money_cents": 100})
    new = state.add("notes", {"person_id": "P-1", "body": "hi"})
    state.delete("notes", new)
    assert state.changes() == ()


def test_a_row_deleted_and_put_back_otherwise_is_an_update() -> None:
    state = world()
    state.delete("people", "P-2")
    state.put("people", {"id": "P-2", "name": "Bea", "money_cents": 200})
    (change,) = state.changes()
    assert (change.op, change.before, change.after) == ("update", {"name": "Ben"}, {"name": "Bea"})


def test_a_replaced_row_is_an_update() -> None:
    state = world()
    state.put("people", {"id": "P-2", "name": "Bea", "money_cents": 200})
    (change,) = state.changes()
    assert (change.op, change.before, change.after) == ("update", {"name": "Ben"}, {"name": "Bea"})


def test_a_fork_has_a_future_of_its_own() -> None:
    state = world()
    state.update("people", "P-1", {"money_cents": 1})
    fork = state.fork()
    fork.update("people", "P-2", {"money_cents": 2})
    assert [change.id for change in state.changes()] == ["P-1"]
    assert [change.id for change in fork.changes()] == ["P-1", "P-2"]


def test_an_error_inside_a_transaction_leaves_the_state_as_it_was() -> None:
    state = world()
    before = state.image
    with pytest.raises(sqlite3.IntegrityError):
        _half_a_transfer(state)
    assert state.changes() == ()
    assert state.image == before


def _half_a_transfer(state: State) -> None:
    with state.transaction():
        state.update("people", "P-1", {"money_cents": 1})
        state.update("people", "P-2", {"money_cents": "much"})


def test_a_minted_id_does_not_depend_on_what_was_minted_before() -> None:
    one, other = world(), world()
    row = {"person_id": "P-1", "body": "x"}
    first, second = one.add("notes", row, "a"), one.add("notes", row, "b")
    assert other.add("notes", row, "b") == second
    assert other.add("notes", row, "a") == first


def test_a_second_row_of_the_same_key_gets_another_id() -> None:
    state = world()
    row = {"person_id": "P-1", "body": "x"}
    assert state.add("notes", row, "a") != state.add("notes", row, "a")


def test_what_the_world_does_itself_is_not_the_agents_change() -> None:
    state = world()
    with state.unjournaled():
        state.update("people", "P-1", {"money_cents": 99})
    assert state.changes() == ()
    state.update("people", "P-1", {"money_cents": 98})
    assert state.changes()[0].before == {"money_cents": 99}


def test_virtual_time_only_passes_when_told_to() -> None:
    state = world()
    state.advance(12 * 3600 + 60)
    assert state.now == "2031-05-05T00:01:00Z"


def test_money_is_whole_cents() -> None:
    state = world()
    with pytest.raises(Exception, match="CHECK"):
        state.update("people", "P-1", {"money_cents": 1.5})


def test_a_table_comes_after_those_it_refers_to() -> None:
    with pytest.raises(DefinitionError, match="list the tables"):
        Schema((Table("a", "A", (Column("b_id", ref="b"),)), Table("b", "B", ())))


def test_a_natural_key_is_made_of_columns() -> None:
    with pytest.raises(DefinitionError, match="natural"):
        Schema((Table("a", "A", (Column("x"),), natural=("y",)),))


def test_case_and_white_space_do_not_matter_where_declared() -> None:
    assert normal("casefold", "  Ada   LOVELACE ") == normal("casefold", "ada lovelace")
    assert normal("exact", "Ada") != normal("exact", "ada")


def test_the_order_of_a_set_does_not_matter() -> None:
    assert normal("set", '["b", "a"]') == normal("set", '["a","b"]')
    assert normal("set", '["b"]') != normal("set", '["b", "b"]')
    assert normal("set", "no list") == "no list"


def test_draws_follow_from_their_key_alone() -> None:
    draws = Draws("a", 1)
    assert [draws.below(1000) for _ in range(10)] == [
        585, 307, 21, 326, 769, 451, 733, 533, 891, 507,
    ]  # fmt: skip
    assert mint("P", "a", 1) == "P-EDS7B2G"


@pytest.mark.parametrize("bound", [1, 2, 7, 100, 16_000, 24_805])
def test_numbers_that_are_scattered_never_meet_within_the_range(bound: int) -> None:
    places = [scatter(number, bound, "train") for number in range(3, bound + 3)]
    assert sorted(places) == [*range(bound)]


def test_numbers_are_scattered_otherwise_by_another_key() -> None:
    one, other = ([scatter(number, 1000, key) for number in range(9)] for key in ("a", "b"))
    assert one != other
    assert one != sorted(one)


def test_draws_cover_their_range_and_nothing_else() -> None:
    draws = Draws("range")
    assert {draws.between(3, 6) for _ in range(200)} == {3, 4, 5, 6}
    assert sorted(draws.shuffled(range(9))) == list(range(9))
    assert len(set(draws.sample("abcdef", 4))) == 4
    assert not any(draws.chance(0) for _ in range(50))
    assert all(draws.chance(100) for _ in range(50))
