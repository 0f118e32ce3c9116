import json
import random
from pathlib import Path

import pytest

from gymsuite.verify import (
    qa_hotpot,
    qa_musique,
    qa_search_r1,
    qa_squad,
    qa_two_wiki,
)
from gymsuite.verify.qa import SCORERS

VERDICTS = Path(__file__).parents[3] / "shared" / "data" / "qa" / "score_verdicts_open.jsonl"


def verdicts(kind: str) -> list[dict[str, object]]:
    if not VERDICTS.is_file():
        pytest.skip(f"no {VERDICTS.name} beside the checkout")
    rows = [json.loads(line) for line in VERDICTS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["kind"] == kind]


def test_every_known_verdict_of_the_references_is_ours() -> None:
    rows = verdicts("score")
    assert len(rows) > 40
    for row in rows:
        pred, gold = str(row["pred"]), str(row["gold"])
        assert qa_squad.normalize(pred) == row["norm_pred"], row
        assert qa_squad.normalize(gold) == row["norm_gold"], row
        assert qa_squad.squad_em(pred, [gold]) == row["em"], row
        assert qa_hotpot.hotpot_em(pred, gold) == row["em"], row
        assert qa_musique.musique_em(pred, [gold]) == row["em"], row
        assert qa_two_wiki.two_wiki_answer(pred, [gold]).em == row["em"], row
        assert qa_hotpot.hotpot_f1(pred, gold) == row["f1_hotpot"], row
        assert qa_two_wiki.two_wiki_answer(pred, [gold]).f1 == row["f1_hotpot"], row
        assert qa_squad.squad_f1(pred, [gold]) == row["f1_squad2"], row
        assert qa_musique.musique_f1(pred, [gold]) == row["f1_squad2"], row
        assert qa_search_r1.search_r1_em(pred, gold) == row["em_r1"], row
        assert qa_search_r1.search_r1_subem(pred, [gold]) == row["subem_r1"], row


def test_answers_are_found_where_the_references_find_them() -> None:
    for row in verdicts("extract"):
        text = str(row["text"])
        assert qa_search_r1.search_r1_extract(text) == row["search_r1"], row
        assert qa_search_r1.skyrl_extract(text) == row["skyrl"], row


def test_an_example_in_the_prompt_is_no_answer_to_search_r1() -> None:
    prompt = "write <answer> Beijing </answer>.\n"
    target = {"target": ["Paris"]}
    assert qa_search_r1.search_r1_reward(prompt + "Paris", target) == 0.0
    assert qa_search_r1.search_r1_reward(prompt + "<answer>\nPARIS.</answer>", target) == 1.0
    wrong = qa_search_r1.search_r1_reward(
        prompt + "<answer>Rome</answer>", target, format_score=0.1
    )
    assert wrong == 0.1


def test_search_r1_pays_a_part_only_where_its_substring_reward_is_asked_for() -> None:
    transcript = "<answer>an example</answer><answer>Paris, France</answer>"
    target = {"target": "Paris"}
    assert qa_search_r1.search_r1_reward(transcript, target) == 0.0
    scorer = qa_search_r1.search_r1_subem
    assert qa_search_r1.search_r1_reward(transcript, target, scorer=scorer) == 1.0


@pytest.mark.parametrize("name", SCORERS)
def test_one_accepted_answer_is_not_a_list_of_letters(name: str) -> None:
    scorer = SCORERS[name]
    assert scorer("ab", "ab") == scorer("ab", ["ab"]) == 1.0
    assert scorer("b", "ab") == scorer("b", ["ab"]) == 0.0


def test_scorers_keep_the_quirks_of_unicode_that_the_references_have() -> None:
    same = [("The\u00a0Hague", "hague"), ("\uff34he", "\uff54he"), ("a\u0301 b", "\u0301 b")]
    for one, other in same:
        assert qa_squad.normalize(one) == qa_squad.normalize(other)
    different = [
        ("\u2019the", "the"),
        ("na\u00efve", "naive"),
        ("a\u2013b", "ab"),
        ("2\u00bd", "2"),
    ]
    for one, other in different:
        assert qa_squad.normalize(one) != qa_squad.normalize(other)
    assert qa_squad.normalize("\u2018the end\u2019") == "\u2018 end\u2019"
    assert qa_squad.normalize("a_the the_a") == "athe thea"


def test_facts_and_triples_of_any_length_are_wrong_and_break_nothing() -> None:
    odd: list[list[str | int]] = [["A"], ["A", 0, 1], ["A", 0]]
    assert qa_hotpot.hotpot_support(odd, [["A", 0]]) == (0.0, 0.5, 1 / 3, 1.0)
    assert qa_two_wiki.two_wiki_support(odd, [["a", 0]]) == (0.0, 0.5, 1 / 3, 1.0)
    assert qa_two_wiki.two_wiki_evidence([["a", "b"]], [[["a", "b", "c"]]]).f1 == 0.0


def test_squad_drops_accepted_answers_that_normalise_to_nothing() -> None:
    assert qa_squad.squad_em("", ["the", "Paris"]) == 0.0
    assert qa_squad.squad_em("", []) == 1.0
    assert qa_squad.squad_f1("a", ["the"]) == 1.0
    assert qa_musique.musique_em("", ["the", "Paris"]) == 1.0


def test_two_empty_answers_differ_between_hotpot_and_squad() -> None:
    assert qa_hotpot.hotpot_f1("", "") == 0.0
    assert qa_squad.squad_f1("", [""]) == 1.0
    assert qa_hotpot.hotpot_answer("", "").em == 1.0


def test_hotpot_support_counts_distinct_facts() -> None:
    gold = [("A", 0), ("B", 2)]
    marks = qa_hotpot.hotpot_support([("A", 0), ("A", 0), ("a", 0)], gold)
    assert marks == (0.0, 0.5, 0.5, 0.5)
    assert qa_hotpot.hotpot_support([], []) == (1.0, 0.0, 0.0, 0.0)
    assert qa_hotpot.hotpot_support([], gold) == (0.0, 0.0, 0.0, 0.0)


def test_hotpot_joint_multiplies_precisions_and_recalls() -> None:
    gold = [("A", 0), ("B", 2)]
    marks = qa_hotpot.hotpot_joint("Paris France", "Paris", [("A", 0)], gold)
    assert marks.em == 0.0
    assert (marks.precision, marks.recall) == (0.5, 0.5)
    assert marks.f1 == 0.5
    assert qa_hotpot.hotpot_joint("x", "y", [("A", 0)], gold).f1 == 0.0


def test_musique_support_of_nothing_is_right_if_nothing_supports() -> None:
    assert qa_musique.musique_support([], []) == (1.0, 1.0, 0.0, 0.0)
    assert qa_musique.musique_support([1, 2], [2, 3])[:2] == (0.0, 0.5)


@pytest.mark.parametrize(
    ("judged", "marks"),
    [([True, False], (1.0, 1.0, 1.0)), ([True, True], (0, 0, 0)), ([False, True], (0, 0, 0))],
)
def test_a_musique_pair_counts_only_if_both_halves_are_judged_right(
    judged: list[bool], marks: tuple[float, ...]
) -> None:
    pair = qa_musique.musique_pair_answer("paris", ["Paris"], judged, [True, False])
    assert pair == marks
    assert qa_musique.musique_pair_support([1], [1], judged, [True, False]) == marks


def test_two_wiki_takes_each_mark_from_its_own_best_alias() -> None:
    marks = qa_two_wiki.two_wiki_answer("new york city", ["new york", "big new york city hall"])
    assert marks.precision == 1.0  # from the second alias
    assert marks.recall == 1.0  # from the first
    assert marks.em == 0.0


def test_two_wiki_titles_in_two_spellings_count_twice() -> None:
    assert qa_two_wiki.two_wiki_support([("A", 0)], [("a", 0)]).em == 1.0
    twice = qa_two_wiki.two_wiki_support([("A", 0), ("a", 0), ("b", 1)], [("a", 0)])
    assert twice.precision == 2 / 3


def test_two_wiki_evidence_keeps_articles_and_accepts_aliases() -> None:
    gold = [{("Ann", "born in", "The Hague"), ("Anne", "born in", "The Hague")}]
    assert qa_two_wiki.two_wiki_evidence([("anne", "born in", "the hague.")], gold).em == 1.0
    assert qa_two_wiki.two_wiki_evidence([("anne", "born in", "Hague")], gold).f1 == 0.0
    assert qa_two_wiki.two_wiki_evidence([], []) == (1.0, 0.0, 0.0, 0.0)
    marks = qa_two_wiki.two_wiki_joint(
        qa_two_wiki.two_wiki_answer("x", ["x"]),
        qa_two_wiki.two_wiki_support([("A", 0)], [("A", 0)]),
        qa_two_wiki.two_wiki_evidence([("a", "b", "c"), ("d", "e", "f")], [[("a", "b", "c")]]),
    )
    assert (marks.em, marks.precision, marks.recall) == (0.0, 0.5, 1.0)


def test_metrics_stay_within_their_bounds_and_agree_on_equal_texts() -> None:
    rng = random.Random(7)
    words = ["the", "a", "Paris", "new-york", "3.14", "yes", "no", "noanswer", "Ünï", "", "!", "an"]
    for _ in range(500):
        one, two = (" ".join(rng.choices(words, k=rng.randint(0, 4))) for _ in range(2))
        f1 = qa_squad.squad_f1(one, [two])
        assert 0.0 <= qa_hotpot.hotpot_f1(one, two) <= f1 <= 1.0
        assert f1 == qa_squad.squad_f1(two, [one]) or not qa_squad.normalize(two)
        assert qa_search_r1.search_r1_em(one, two) <= qa_search_r1.search_r1_subem(one, two)
        assert qa_squad.squad_em(one, [one]) == 1.0
        assert qa_squad.normalize(qa_squad.normalize(one)) == qa_squad.normalize(one)
