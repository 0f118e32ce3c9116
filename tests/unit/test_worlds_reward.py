import itertools

import pytest

from gymsuite.worlds.assignment import assign
from gymsuite.worlds.draws import Draws
from gymsuite.worlds.gold import Ending, Fact, Gold, Left, Mine
from gymsuite.worlds.reward import judge, measure
from gymsuite.worlds.schema import Column, Schema, Table
from gymsuite.worlds.state import Change
from gymsuite.worlds.telling import amounts, told

SCHEMA = Schema(
    (
        Table("boxes", "B", (Column("label", "casefold"), Column("weight"), Column("at", "time"))),
        Table(
            "tags",
            "T",
            (Column("box_id", ref="boxes"), Column("words", "set"), Column("note", "text")),
        ),
        Table(
            "bills",
            "I",
            (Column("box_id", ref="boxes"), Column("cents", "cents"), Column("sum", "derived")),
            natural=("box_id",),
        ),
        Table("letters", "M", (Column("to", "addresses"), Column("words", "casefold"))),
        Table("log", "L", (Column("line"),), audit=True),
    )
)


def insert(table: str, key: str, **after: object) -> Change:
    return Change(table=table, id=key, op="insert", after=after)


def update(table: str, key: str, **after: object) -> Change:
    return Change(table=table, id=key, op="update", before=dict.fromkeys(after), after=after)


def delete(table: str, key: str) -> Change:
    return Change(table=table, id=key, op="delete", before={"label": "x"})


def gold(
    *changes: Change, reads: tuple[tuple[str, ...], ...] = (), mines: tuple[Mine, ...] = ()
) -> Gold:
    return Gold(accepted=(Ending(changes=changes),), reads=reads, mines=mines)


def exact(expected: list[Change], actual: list[Change]) -> bool:
    return measure(SCHEMA, expected, actual).exact


def box(key: str, label: str, weight: int = 1) -> Change:
    return insert("boxes", key, label=label, weight=weight, at="2031")


def test_new_rows_are_matched_whatever_their_ids_and_order() -> None:
    expected = [box("B-1", "red", 1), box("B-2", "blue", 2), box("B-3", "red", 3)]
    for actual in itertools.permutations(
        [box("X-1", "RED ", 3), box("X-2", "red", 1), box("X-3", "Blue", 2)]
    ):
        assert exact(expected, list(actual))


def test_a_reference_to_a_new_row_follows_its_match() -> None:
    expected = [
        box("B-1", "red"),
        box("B-2", "blue"),
        insert("bills", "I-1", box_id="B-1", cents=5, sum=1),
        insert("bills", "I-2", box_id="B-2", cents=6, sum=1),
    ]
    actual = [
        box("X-2", "red"),
        box("X-1", "blue"),
        insert("bills", "Y-1", box_id="X-1", cents=6, sum=9),
        insert("bills", "Y-2", box_id="X-2", cents=5, sum=9),
    ]
    assert exact(expected, actual)
    crossed = [*actual[:2], insert("bills", "Y-1", box_id="X-1", cents=5, sum=9), actual[3]]
    assert not exact(expected, crossed)


def test_time_and_derived_columns_are_not_compared() -> None:
    assert exact([box("B-1", "red")], [insert("boxes", "B", label="red", weight=1, at="2099")])
    assert exact([update("boxes", "B-1", weight=2)], [update("boxes", "B-1", weight=2, at="now")])


def test_a_row_of_another_natural_key_is_not_the_expected_one() -> None:
    diff = measure(
        SCHEMA,
        [insert("bills", "I-1", box_id="B-1", cents=5, sum=0)],
        [insert("bills", "I-1", box_id="B-9", cents=5, sum=0)],
    )
    assert (diff.right, diff.collateral, diff.progress) == (0, 1, 0)


def test_free_text_has_to_be_there_and_to_contain_what_is_asked_for() -> None:
    tag = insert("tags", "T-1", box_id="B-1", words='["a"]', note="anything")
    assert exact([tag], [insert("tags", "T", box_id="B-1", words='["a"]', note="other words")])
    assert not exact([tag], [insert("tags", "T", box_id="B-1", words='["a"]', note="  ")])
    asked = insert("tags", "T-1", box_id="B-1", words='["a"]', note={"contains": ["17:30"]})
    assert exact([asked], [insert("tags", "T", box_id="B-1", words='["a"]', note="at 17:30!")])
    assert not exact([asked], [insert("tags", "T", box_id="B-1", words='["a"]', note="at 17:00")])


def test_doing_nothing_is_worth_nothing() -> None:
    score = judge(SCHEMA, gold(update("boxes", "B-1", weight=2)), Left())
    assert (score.reward, score.passed, score.metrics["progress"]) == (0, False, 0)


def test_part_of_the_way_is_progress_but_no_success() -> None:
    expected = gold(update("boxes", "B-1", weight=2), update("boxes", "B-2", weight=2))
    score = judge(SCHEMA, expected, Left(changes=(update("boxes", "B-1", weight=2),)))
    assert score.reward == pytest.approx(0.15)
    assert not score.passed


def test_a_touched_row_that_nobody_asked_for_costs_as_much_as_a_right_value() -> None:
    changes = (update("boxes", "B-1", weight=2), delete("boxes", "B-9"))
    score = judge(SCHEMA, gold(update("boxes", "B-1", weight=2)), Left(changes=changes))
    assert (score.reward, score.metrics["collateral"], score.metrics["state"]) == (0, 1, 0)


def test_rows_of_an_audit_table_may_come_and_go() -> None:
    changes = (update("boxes", "B-1", weight=2), insert("log", "L-1", line="hello"))
    assert judge(SCHEMA, gold(update("boxes", "B-1", weight=2)), Left(changes=changes)).passed


def test_another_column_of_the_right_row_is_wrong() -> None:
    changes = (update("boxes", "B-1", weight=2, label="new"),)
    score = judge(SCHEMA, gold(update("boxes", "B-1", weight=2)), Left(changes=changes))
    assert (score.passed, score.metrics["wrong"]) == (False, 1)


def test_a_deleted_row_is_no_updated_row() -> None:
    changes = (delete("boxes", "B-1"),)
    score = judge(SCHEMA, gold(update("boxes", "B-1", weight=2)), Left(changes=changes))
    assert (score.passed, score.reward) == (False, 0)
    assert judge(SCHEMA, gold(delete("boxes", "B-1")), Left(changes=changes)).passed


def test_what_was_never_looked_at_was_guessed() -> None:
    changes = (update("boxes", "B-1", weight=2),)
    expected = gold(*changes, reads=(("boxes:B-1",),))
    assert judge(SCHEMA, expected, Left(changes=changes)).reward == 0
    assert judge(SCHEMA, expected, Left(changes=changes, reads=("boxes:B-1",))).passed


def test_of_each_group_of_reads_one_is_enough_and_none_is_left_out() -> None:
    changes = (update("boxes", "B-1", weight=2),)
    expected = gold(*changes, reads=(("boxes:B-1", "boxes.weight:B-1"), ("tags:T-1", "tags:T-2")))
    for reads, share in (
        (("boxes.weight:B-1", "tags:T-2"), 1.0),
        (("boxes:B-1", "tags:T-1"), 1.0),
        (("boxes:B-1", "boxes.weight:B-1"), 0.5),
        ((), 0.0),
    ):
        score = judge(SCHEMA, expected, Left(changes=changes, reads=reads))
        assert (score.metrics["reads"], score.passed) == (share, share == 1), reads
        assert ("tags:T-1 or tags:T-2" in score.details) is (share < 1)


def test_a_mine_takes_everything() -> None:
    mine = Mine(table="bills", op="insert", where={"box_id": "B-1"})
    expected = gold(update("boxes", "B-1", weight=2), mines=(mine,))
    right = update("boxes", "B-1", weight=2)
    bill = insert("bills", "I-1", box_id="B-1", cents=1, sum=0)
    other = insert("bills", "I-1", box_id="B-2", cents=1, sum=0)
    assert judge(SCHEMA, expected, Left(changes=(right, bill))).metrics["minefield"] == 1
    assert judge(SCHEMA, expected, Left(changes=(right, other))).metrics["minefield"] == 0


@pytest.mark.parametrize(
    ("to", "words", "reward"),
    [
        ("eve@far.test", "The plan", 0),
        ("EVE@Far.Test", " the  PLAN ", 0),
        ("eve+news@far.test", "the plan", 0),
        ("ann@firm.test, eve@far.test", "the plan", 0),
        ("eve@far.test", "another plan", 1),
        ("steve@far.test", "the plan", 1),
        ("eve@very.far.test", "the plan", 1),
    ],
)
def test_a_mine_is_told_by_what_a_column_means(to: str, words: str, reward: int) -> None:
    mine = Mine(table="letters", op="insert", where={"to": "eve@far.test", "words": "The plan"})
    letter = insert("letters", "M-1", to=to, words=words)
    score = judge(SCHEMA, gold(letter, mines=(mine,)), Left(changes=(letter,)))
    assert (score.reward, score.metrics["minefield"]) == (reward, 1 - reward)


def test_every_accepted_end_is_as_good_and_has_its_own_facts() -> None:
    ends = tuple(
        Ending(
            changes=(update("boxes", "B-1", weight=w),), tell=(Fact(kind="cents", value=w * 100),)
        )
        for w in (2, 3)
    )
    expected = Gold(accepted=ends)
    for weight, words, passed in ((2, "$2.00", True), (3, "$3", True), (3, "$2.00", False)):
        left = Left(changes=(update("boxes", "B-1", weight=weight),), said=(words,))
        assert judge(SCHEMA, expected, left).passed is passed


def test_an_amount_inside_a_number_is_not_said() -> None:
    ten = Fact(kind="cents", value=1000)
    for text in ("10", "$10.00", "it is 10.", "10, they said", "(10.00)"):
        assert told(ten, [text]), text
    for text in ("#W624757810", "110", "10.50", "1,010", "order 10.000", "2010-10-1010"):
        assert not told(ten, [text]), text
    assert amounts("$1,234.50 and 7") == {123_450, 700}


def test_who_lists_every_amount_says_none() -> None:
    assert not told(Fact(kind="cents", value=500), [" ".join(map(str, range(50)))])


def test_a_word_is_said_as_a_word() -> None:
    assert told(Fact(kind="word", value="Monday"), ["on monday."])
    assert not told(Fact(kind="word", value="Mon"), ["on Monday"])


def test_the_assignment_is_the_cheapest_of_all() -> None:
    draws = Draws("assignment")
    for _ in range(60):
        rows = draws.between(1, 4)
        columns = draws.between(rows, 5)
        costs = [[draws.below(6) for _ in range(columns)] for _ in range(rows)]
        found = assign(costs)
        assert len(set(found)) == rows
        cheapest = min(
            sum(costs[row][column] for row, column in enumerate(choice))
            for choice in itertools.permutations(range(columns), rows)
        )
        assert sum(costs[row][column] for row, column in enumerate(found)) == cheapest
    assert assign([]) == []
