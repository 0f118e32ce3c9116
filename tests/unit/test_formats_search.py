import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gymsuite import (
    DefinitionError,
    Environment,
    Message,
    Rollout,
    Task,
    ToolCall,
    rollout,
)
from gymsuite.agents import Seat
from gymsuite.agents.scripted import NoopAgent, OracleAgent
from gymsuite.formats import browsecomp, nemo_gym_qa, trec
from gymsuite.formats.beir import read_beir
from gymsuite.formats.hotpotqa import read_hotpotqa
from gymsuite.formats.musique import read_musique
from gymsuite.formats.search_r1 import read_golden, read_search_r1
from gymsuite.formats.simpleqa import read_frames, read_simpleqa
from gymsuite.formats.two_wiki import read_two_wiki
from gymsuite.search.qa_set import QaSet, qa_environment
from gymsuite.verify.qa import SCORERS

from .conftest import no_sandbox

QA = Path(__file__).parents[1] / "fixtures" / "qa"
NEMO = Path(__file__).parents[3] / "shared" / "data" / "nemo_gym" / "hotpotqa_qa.jsonl"
CANARY = "a canary for tests"


def search_r1(folder: Path) -> Path:
    """A file with the columns of Search-R1's nq_search."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    prompt = (
        "Answer the given question. For example, <answer> Beijing </answer>. "
        "Question: where was ilse brandt born?\n"
    )
    row = {
        "id": "test_0",
        "question": "where was ilse brandt born?",
        "golden_answers": ["Tarn", "Tarn-on-Sea"],
        "data_source": "nq",
        "prompt": [{"content": prompt, "role": "user"}],
        "ability": "fact-reasoning",
        "reward_model": {"ground_truth": {"target": ["Tarn", "Tarn-on-Sea"]}, "style": "rule"},
        "extra_info": {"index": 0, "split": "test"},
    }
    path = folder / "test.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    return path


READERS: dict[str, Callable[[Path], QaSet]] = {
    "hotpotqa": lambda _: read_hotpotqa(QA / "hotpotqa.json"),
    "two_wiki": lambda _: read_two_wiki(QA / "two_wiki.json", QA / "id_aliases.json"),
    "musique": lambda _: read_musique(QA / "musique.jsonl"),
    "beir": lambda _: read_beir(QA / "beir"),
    "search_r1": lambda folder: read_search_r1(search_r1(folder)),
    "browsecomp": lambda _: browsecomp.read_browsecomp(QA / "browsecomp.csv"),
    "browsecomp_plus": lambda _: browsecomp.read_browsecomp_plus(
        QA / "browsecomp_plus.jsonl", canary=CANARY
    ),
    "simpleqa": lambda _: read_simpleqa(QA / "simpleqa.csv"),
    "frames": lambda _: read_frames(QA / "frames.tsv"),
}


def play(environment: Environment, task: Task, agent: object) -> Rollout:
    return asyncio.run(rollout(environment, task, lambda _: agent, no_sandbox))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", READERS)
def test_gold_scores_one_and_nothing_scores_nothing(name: str, tmp_path: Path) -> None:
    environment = qa_environment(f"qa/{name}-v1", READERS[name](tmp_path), lambda: tmp_path)
    seat = Seat(environment, no_sandbox, 0, 0)
    for task in environment.tasks:
        gold = play(environment, task, OracleAgent(task, seat))
        assert gold.score is not None, gold.failure
        assert (gold.score.reward, gold.score.passed) == (1.0, True)
        nothing = play(environment, task, NoopAgent())
        assert nothing.score is not None, nothing.failure
        assert (nothing.score.reward, nothing.score.passed) == (0.0, False)


def test_hotpotqa_keeps_each_paragraph_once_and_knows_the_supporting_ones() -> None:
    qa = read_hotpotqa(QA / "hotpotqa.json", split="dev")
    assert [d.title for d in qa.documents] == ["Orvath Bridge", "Ilse Brandt", "Tarn", "Lemmer"]
    titles = {document.id: document.title for document in qa.documents}
    assert [titles[s] for s in qa.tasks[0].hidden["support"]] == ["Orvath Bridge", "Ilse Brandt"]
    assert (qa.tasks[0].id, qa.tasks[0].level, qa.tasks[0].split) == (
        "5a7a06935542990198eaf050",
        3,
        "dev",
    )


def test_a_scorer_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(DefinitionError, match=r"no scorer 'hotpot'; there are typed, squad_em"):
        read_hotpotqa(QA / "hotpotqa.json", scorer="hotpot")


def test_two_wiki_accepts_the_aliases_of_an_answer() -> None:
    qa = read_two_wiki(QA / "two_wiki.json", QA / "id_aliases.json")
    assert qa.tasks[0].hidden["answers"] == ["Tarn", "Tarn-on-Sea", "Tarner"]
    assert qa.tasks[1].hidden["answers"] == ["Ilse Brandt"]
    assert read_two_wiki(QA / "two_wiki.json").tasks[0].hidden["answers"] == ["Tarn"]


def test_the_halves_of_a_musique_pair_have_ids_of_their_own() -> None:
    one, other = read_musique(QA / "musique.jsonl").tasks
    assert other.id == f"{one.id}-unanswerable"
    assert one.metadata["pair"] == other.metadata["pair"]
    assert one.hidden["answers"] == ["Tarn", "Tarn-on-Sea"]
    assert "insufficient evidence" in other.hidden["answers"]


def test_beir_asks_for_the_relevant_documents_only() -> None:
    qa = read_beir(QA / "beir")
    assert [task.id for task in qa.tasks] == ["1"]
    assert qa.tasks[0].hidden["relevant"] == ["4983", "5836"]


def test_search_r1_keeps_the_question_and_drops_the_example(tmp_path: Path) -> None:
    (task,) = read_search_r1(search_r1(tmp_path)).tasks
    assert task.prompt == "where was ilse brandt born?"
    assert "Beijing" not in task.prompt
    assert (task.id, task.hidden["answers"]) == ("nq-test-0", ["Tarn", "Tarn-on-Sea"])
    golden = tmp_path / "nq.jsonl"
    golden.write_text('{"id": "t0", "question": "q?", "golden_answers": ["a"]}\n')
    assert read_golden(golden).tasks[0].hidden["answers"] == ["a"]


def test_browsecomp_is_decrypted_in_memory_and_nowhere_else() -> None:
    assert "Tarn" not in (QA / "browsecomp.csv").read_text()
    (task,) = browsecomp.read_browsecomp(QA / "browsecomp.csv").tasks
    assert task.prompt == "In which town, named after a lake, was the designer born?"
    plus = browsecomp.read_browsecomp_plus(QA / "browsecomp_plus.jsonl", canary=CANARY)
    assert plus.tasks[0].hidden["support"] == ["88", "91"]
    assert plus.documents == ()  # so that no index holds the plain text
    with pytest.raises(DefinitionError, match="canary"):
        browsecomp.read_browsecomp_plus(QA / "browsecomp_plus.jsonl", canary="another")
    for text in ("", "é" * 100, "x"):
        assert browsecomp.decrypt(browsecomp.encrypt(text, "k"), "k") == text


def test_trec_measures_are_those_of_trec_eval() -> None:
    qrels, run = trec.read_qrels(QA / "qrels.trec"), trec.read_run(QA / "run.trec")
    assert run["301"] == ["FBIS3-10243", "FBIS3-10169", "FBIS3-10082"]  # the greater id first
    recall, ndcg, rank, queries = trec.measure(qrels, run)
    assert queries == 2  # 303 has nothing relevant
    assert recall == pytest.approx(0.5)
    assert rank == pytest.approx(0.5)
    assert ndcg == pytest.approx(0.5 * 2.5 / (2 + 0.6309297535714575))
    assert trec.measure({}, run) == (0.0, 0.0, 0.0, 0)
    assert trec.measure(qrels, run, depth=1).recall == pytest.approx(0.25)


def test_nemo_gym_rows_want_a_json_object(tmp_path: Path) -> None:
    qa = nemo_gym_qa.read_nemo_gym_qa(QA / "nemo_gym_qa.jsonl")
    environment = nemo_gym_qa.nemo_gym_qa_environment("qa/nemo-v1", qa)

    class Speaker:
        def __init__(self, text: str) -> None:
            self.text = text

        async def act(self, observation: object) -> Message:
            return Message(role="assistant", content=self.text)

    def reward(text: str) -> float:
        record = play(environment, qa.tasks[0], Speaker(text))
        assert record.score is not None, record.failure
        return record.score.reward

    assert qa.tasks[0].prompt.startswith("Answer the question.")
    assert reward('{"answer": "tarn"}') == 1.0
    assert reward('```json\n{"answer": "Tarn."}\n```') == 1.0
    deep = "[" * 100_000
    for wrong in ("Tarn", '{"answer": 1}', "[]", '{"answer": "Lemmer"}', "", '"Tarn"', deep):
        assert reward(wrong) == 0.0


def test_the_given_rows_of_nemo_gym_are_read() -> None:
    if not NEMO.is_file():
        pytest.skip(f"no {NEMO.name} beside the checkout")
    qa = nemo_gym_qa.read_nemo_gym_qa(NEMO)
    environment = nemo_gym_qa.nemo_gym_qa_environment("qa/nemo-v1", qa)
    assert len(qa.tasks) == 5
    for task in qa.tasks:
        seat = Seat(environment, no_sandbox, 0, 0)
        record = play(environment, task, OracleAgent(task, seat))
        assert record.score is not None, record.failure
        assert record.score.passed


@pytest.mark.parametrize("scorer", SCORERS)
def test_every_scorer_gives_gold_one_and_nothing_zero(scorer: str) -> None:
    assert SCORERS[scorer]("Tarn", ["Lemmer", "Tarn"]) == 1.0
    assert SCORERS[scorer]("", ["Lemmer", "Tarn"]) == 0.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "JSON array"),
        ("[", "not JSON"),
        ('[{"_id": "a", "question": "q"}]', r"hotpot\.json:1: answer: Field required"),
        ('[{"_id": 1, "question": "q", "answer": "a"}]', "1: _id"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "hotpot.json"
    path.write_text(text)
    with pytest.raises(DefinitionError, match=problem):
        read_hotpotqa(path)
    with pytest.raises(DefinitionError, match=r"none\.json"):
        read_hotpotqa(tmp_path / "none.json")


def test_a_broken_table_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "simpleqa.csv"
    for rows, problem in (
        ('"two\nlines",a\nq\n', r"simpleqa\.csv:4: answer: "),
        (f"{'q' * 200_000},a\n", r"simpleqa\.csv:\d: not CSV: field larger than"),
    ):
        path.write_text(f"problem,answer\n{rows}")
        with pytest.raises(DefinitionError, match=problem):
            read_simpleqa(path)


def test_nesting_without_end_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("[" * 100_000)
    for read in (read_hotpotqa, nemo_gym_qa.read_nemo_gym_qa):
        with pytest.raises(DefinitionError, match=r"rows\.json.*not JSON"):
            read(path)


def test_a_row_that_expects_no_answer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    request = {"input": [{"role": "user", "content": "q"}]}
    row = {"id": 1, "responses_create_params": request, "expected_answer": []}
    path.write_text(json.dumps(row))
    with pytest.raises(DefinitionError, match=r"rows\.jsonl:1: expected_answer"):
        nemo_gym_qa.read_nemo_gym_qa(path)


def test_a_judgement_of_a_document_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "a", "text": "x"}) + "\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "x"}) + "\n")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tb\t1\n")
    with pytest.raises(DefinitionError, match="no such document"):
        read_beir(tmp_path)


def test_a_wrong_answer_is_measured_by_both_scorers(tmp_path: Path) -> None:
    environment = qa_environment(
        "qa/h-v1", read_hotpotqa(QA / "hotpotqa.json", scorer="hotpot_f1"), lambda: tmp_path
    )
    calls = [ToolCall(id="1", name="submit", arguments={"answer": "the town of Tarn"})]

    class Once:
        async def act(self, observation: object) -> Message:
            return Message(role="assistant", tool_calls=tuple(calls))

    record = play(environment, environment.tasks[0], Once())
    assert record.score is not None
    assert record.score.reward == pytest.approx(0.5)
    assert not record.score.passed
    assert record.score.metrics["typed"] == 0.0
