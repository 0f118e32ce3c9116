from gymsuite import Failure, Rollout, Score, Task
from gymsuite.search import score_pairs


def task(name: str, pair: str = "", *, answerable: bool = True) -> Task:
    metadata = {"pair": pair, "answerable": int(answerable)} if pair else {}
    return Task(id=name, prompt="?", metadata=metadata)


def played(name: str, *, passed: bool | None) -> Rollout:
    score = None if passed is None else Score(reward=float(passed), passed=passed)
    failure = Failure(kind="model", stage="agent", message="gone") if passed is None else None
    return Rollout(id=name, environment="e", task=name, seed=0, score=score, failure=failure)


TASKS = [
    task("a", "a"),
    task("a-cut", "a", answerable=False),
    task("b", "b"),
    task("b-cut", "b", answerable=False),
    task("single"),
]


def test_a_pair_counts_only_if_both_halves_pass() -> None:
    rollouts = [played(name, passed=name != "b-cut") for name in ("a", "a-cut", "b", "b-cut")]
    assert score_pairs(TASKS, [*rollouts, played("single", passed=True)]) == (2, 0.5, 1.0, 0.5)


def test_always_saying_that_nothing_is_known_wins_no_pair() -> None:
    rollouts = [played(t.id, passed=t.id.endswith("-cut")) for t in TASKS]
    assert score_pairs(TASKS, rollouts) == (2, 0.0, 0.0, 1.0)


def test_a_failure_takes_its_pair_out_of_the_count() -> None:
    rollouts = [played("a", passed=None), played("a-cut", passed=True)]
    assert score_pairs(TASKS, rollouts) == (0, 0.0, 0.0, 0.0)


def test_of_repeats_all_must_pass() -> None:
    rollouts = [played("a", passed=True), played("a", passed=False), played("a-cut", passed=True)]
    assert score_pairs(TASKS, rollouts) == (1, 0.0, 0.0, 1.0)
