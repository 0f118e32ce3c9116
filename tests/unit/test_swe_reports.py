"""Predictions in, reports out, both as SWE-bench's harness has them."""

import json
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import DefinitionError, UsageError
from gymsuite.swe.grading import Resolution, Split, Verdict
from gymsuite.swe.loading import load_rows
from gymsuite.swe.predictions import Prediction, read_predictions, unknown_ids
from gymsuite.swe.reports import (
    instance_folder,
    instance_report,
    model_folder,
    report_path,
    run_folder,
    run_report,
    write_json,
)
from gymsuite.swe.rows import Row
from gymsuite.swe.symptoms import symptom

_ROWS = Path(__file__).parents[1] / "fixtures" / "swe" / "rows"
_RIGHT = {"instance_id": "acme__tally-12", "model_name_or_path": "m/1", "model_patch": "diff"}
_KEYS = {
    *("total_instances", "submitted_instances", "completed_instances", "resolved_instances"),
    *("unresolved_instances", "infra_failure_instances", "ambiguous_failure_instances"),
    *("empty_patch_instances", "error_instances", "completed_ids", "incomplete_ids"),
    *("empty_patch_ids", "submitted_ids", "resolved_ids", "unresolved_ids", "infra_failure_ids"),
    *("ambiguous_failure_ids", "failure_reasons", "error_ids", "schema_version"),
    *("unstopped_instances", "unstopped_containers", "unremoved_images"),
}


def _rows(*names: str) -> tuple[Row, ...]:
    row = load_rows(str(_ROWS / "verified.jsonl"))[0]
    return tuple(row.model_copy(update={"instance_id": name}) for name in names)


def _prediction(name: str, patch: str | None = "diff") -> Prediction:
    return Prediction(instance_id=name, model="m/1", patch=patch)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.json", json.dumps([_RIGHT])),
        ("a.json", json.dumps({"acme__tally-12": _RIGHT})),
        ("a.json", json.dumps({"acme__tally-12": {"model_patch": "diff", "prefix": "m/1"}})),
        ("a.json", json.dumps(_RIGHT)),
        ("a.jsonl", json.dumps(_RIGHT) + "\n\n"),
        ("run/preds.json", json.dumps({"acme__tally-12": _RIGHT})),
        ("run/all_preds.jsonl", json.dumps(_RIGHT)),
        ("run/acme__tally-12/acme__tally-12.pred", json.dumps(_RIGHT)),
    ],
)
def test_every_layout_gives_the_same_prediction(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    source = tmp_path / "run" if file.startswith("run/") else path
    assert read_predictions(str(source)) == {"acme__tally-12": _prediction("acme__tally-12")}


def test_a_folder_of_patches_and_multi_swe_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "acme__tally-12.patch").write_bytes(b"a\r\n")
    assert read_predictions(str(tmp_path))["acme__tally-12"].patch == "a\r\n"
    line = {"org": "acme", "repo": "tally-go", "number": 21, "fix_patch": "diff"}
    (tmp_path / "m.jsonl").write_text(json.dumps(line))
    assert list(read_predictions(str(tmp_path / "m.jsonl"))) == ["acme/tally-go:pr-21"]


def test_gold_is_every_rows_own_patch() -> None:
    rows = _rows("a", "b")
    assert {name: p.patch for name, p in read_predictions("gold", rows).items()} == {
        "a": rows[0].patch,
        "b": rows[1].patch,
    }


def test_empty_null_and_blank_patches_are_told_apart(tmp_path: Path) -> None:
    rows = [
        {**_RIGHT, "instance_id": str(n), "model_patch": p} for n, p in enumerate(("", None, " "))
    ]
    (tmp_path / "p.json").write_text(json.dumps(rows))
    found = read_predictions(str(tmp_path / "p.json")).values()
    assert [(p.patch, p.is_empty) for p in found] == [("", True), (None, True), (" ", False)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", r"p\.json: not JSON"),
        ("3", r"a list or a dict by id is expected"),
        ("[3]", r"p\.json: row 1: an object is expected"),
        ('[{"model_patch": ""}]', r"row 1: column instance_id is missing; a row has instance_id"),
        ('[{"instance_id": "a"}]', r"row 1: column model_patch is missing"),
        (
            '[{"instance_id": "a", "model_patch": 3}]',
            r"model_patch: text or null is expected, not 3",
        ),
        (json.dumps([_RIGHT, _RIGHT]), r"two predictions for 'acme__tally-12'"),
    ],
)
def test_a_bad_prediction_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(DefinitionError, match=message):
        read_predictions(str(tmp_path / "p.json"))


def test_half_a_character_spoils_no_prediction(tmp_path: Path) -> None:
    patch = "+\U0001f600 \ud83d \udce9"
    row = {**_RIGHT, "model_name_or_path": "m\ud83d", "model_patch": patch}
    (tmp_path / "p.json").write_text(json.dumps([row]))
    (found,) = read_predictions(str(tmp_path / "p.json")).values()
    assert found.model == "m\ufffd"
    assert (found.patch or "").encode("utf-8", "surrogateescape") == (
        "+\U0001f600 \ufffd ".encode() + b"\xe9"
    )


def test_what_is_no_prediction_file_says_what_is(tmp_path: Path) -> None:
    for source in (tmp_path / "p.txt", tmp_path, tmp_path / "no.json"):
        with pytest.raises(UsageError, match="predictions are|none of preds.json|No such file"):
            read_predictions(str(source))


def test_ids_that_no_row_has_are_listed() -> None:
    assert unknown_ids(["b", "x", "a"], _rows("a", "b")) == ("x",)


def test_a_rows_report_has_upstreams_keys() -> None:
    verdict = Verdict(Split(("a",)), Split(("b",), ()), Resolution.FULL)
    report: Any = instance_report(_prediction("a__b-1"), verdict)
    assert report == {
        "a__b-1": {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": True,
            "infra_failure": False,
            "tests_status": {
                "FAIL_TO_PASS": {"success": ["a"], "failure": []},
                "PASS_TO_PASS": {"success": ["b"], "failure": []},
                "FAIL_TO_FAIL": {"success": [], "failure": []},
                "PASS_TO_FAIL": {"success": [], "failure": []},
            },
        }
    }


def test_an_invalid_run_is_unresolved_and_says_what_the_world_did() -> None:
    report: Any = instance_report(
        _prediction("a"), Verdict(invalid="no result"), "x\nKilled\nModuleNotFoundError"
    )
    assert report["a"]["infra_failure_reason"] == "out_of_memory"
    assert report["a"]["infra_failure"]
    assert not report["a"]["resolved"]
    none: Any = instance_report(_prediction("a", None), None)
    assert none["a"]["patch_is_None"]


def test_a_log_without_a_sign_has_no_symptom() -> None:
    assert symptom("Killed by a dragon") is None
    assert symptom("Timeout error: 5 seconds exceeded") == ("tests_timed_out", False)


def test_a_runs_report_counts_each_row_once(tmp_path: Path) -> None:
    names = ("good", "bad", "error", "empty", "missing", "broken")
    predictions = {
        name: _prediction(name, "" if name == "empty" else "diff")
        for name in names
        if name != "missing"
    }
    for name, resolved in (("good", True), ("bad", False)):
        folder = instance_folder(tmp_path, "run", predictions[name])
        write_json(folder / "report.json", {name: {"resolved": resolved}})
    for name, said in (("bad", "collected 0 items"), ("error", "Could not resolve host: x")):
        folder = instance_folder(tmp_path, "run", predictions[name])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test_output.txt").write_bytes(said.encode() + b"\xff")
    broken = instance_folder(tmp_path, "run", predictions["broken"])
    broken.mkdir(parents=True)
    (broken / "report.json").write_text("")
    report = run_report(tmp_path, "run", _rows(*names), predictions)
    assert set(report) == _KEYS
    assert report["schema_version"] == 2
    assert report["resolved_ids"] == ["good"]
    assert report["unresolved_ids"] == ["bad"]
    assert report["error_ids"] == ["broken", "error"]
    assert report["empty_patch_ids"] == ["empty"]
    assert report["incomplete_ids"] == ["missing"]
    assert report["completed_ids"] == ["bad", "broken", "good"]
    assert report["infra_failure_ids"] == ["error"]
    assert report["ambiguous_failure_ids"] == ["bad"]
    assert report["failure_reasons"] == {
        "bad": "no_tests_collected",
        "error": "network_unreachable",
    }
    assert (report["total_instances"], report["submitted_instances"]) == (6, 5)


def test_no_name_leads_out_of_the_runs_folder(tmp_path: Path) -> None:
    assert model_folder("a/b") == "a__b"
    assert model_folder("..") == "model.."
    folder = instance_folder(tmp_path, "run", _prediction("acme/tally-go:pr-21"))
    assert folder.parent == tmp_path / "logs" / "run_evaluation" / "run" / "m__1"
    assert report_path(tmp_path, "run", {"a": _prediction("a")}).name == "m__1.run.json"


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "../a", "/a", "a\0", "r" * 91])
def test_a_run_id_that_cannot_name_a_file_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(UsageError, match=r"^run id .* without a slash$"):
        run_folder(tmp_path, run_id)


@pytest.mark.parametrize("name", ["m" * 300, "/checkpoints/" * 40, "a\0b", "\u00e9" * 150])
def test_any_name_of_a_model_or_a_row_names_files(tmp_path: Path, name: str) -> None:
    prediction = Prediction(instance_id=name, model=name, patch="")
    folder = instance_folder(tmp_path, "r" * 90, prediction)
    other = Prediction(instance_id=f"{name}!", model=f"{name}!", patch="")
    assert instance_folder(tmp_path, "r" * 90, other).parent != folder.parent
    write_json(folder / "report.json", {})
    write_json(report_path(tmp_path, "r" * 90, {name: prediction}), {})
