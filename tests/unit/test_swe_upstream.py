"""The strict readings, verdicts and reports beside the official harness, where it is installed.

Set GYMSUITE_SWEBENCH_PYTHON to the interpreter of an environment with swebench 5.0.2.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gymsuite.swe.loading import load_rows
from gymsuite.swe.log_grading import grade_log_upstream
from gymsuite.swe.parsers.results import Context, UpstreamRaises
from gymsuite.swe.parsers.table import UPSTREAM, parse_upstream
from gymsuite.swe.predictions import Prediction
from gymsuite.swe.reports import instance_report, report_path, run_folder, run_report

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "swe"
_PYTHON = os.environ.get("GYMSUITE_SWEBENCH_PYTHON", "")
_IDS = ("immutable-js__immutable-js-2005", "a__b-2006", "jekyll__jekyll-9141", "j__j-8761", "x")
_VERSIONS = ("1.27", "10.0", "9.5", "2", "4.1", "x")
_JUNK = (
    *(
        " ",
        "  ",
        "\t",
        "[",
        "]",
        "(",
        ")",
        " - ",
        "PASSED",
        "FAILED",
        "ERROR",
        "\n",
        "ok",
        ":",
        "=",
    ),
    *("\x1b[31m", "\x1b[0m", "::", ". ", "Error", "1)", "✓", " ... ", "12ms", "é", "\x0b", '"'),
    *("(3ms)", "{", "}", "ERROR:", " E", "<b>", "</b>", ">>>>> End Test Output", "\u2028"),
)
_PARSE = """
import contextlib, io, json, sys, types
from swebench.harness.log_parsers import PARSER_REGISTRY
found = []
for name, log, row, version in json.load(sys.stdin):
    spec = types.SimpleNamespace(instance_id=row, version=version)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found.append(PARSER_REGISTRY[name](log, spec))
    except Exception as error:
        found.append(None)
json.dump(found, sys.stdout)
"""
_GRADE = """
import json, pathlib, sys, tempfile
from swebench.harness.grading import get_eval_report
from swebench.harness.utils import make_test_spec
found = []
with tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder, "log.txt")
    for row, text in json.load(sys.stdin):
        log.write_bytes(text.encode())
        prediction = {"instance_id": row["instance_id"], "model_patch": "x"}
        try:
            found.append(get_eval_report(make_test_spec(row), prediction, str(log), True))
        except Exception as error:
            found.append(None)
json.dump(found, sys.stdout)
"""

pytestmark = pytest.mark.skipif(not _PYTHON, reason="GYMSUITE_SWEBENCH_PYTHON is not set")


def _upstream(program: str, cases: list[Any]) -> list[Any]:
    done = subprocess.run(
        [_PYTHON, "-c", program],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(done.stdout)
    return found


def _mutated(rng: random.Random, log: str, others: list[str]) -> str:
    for _ in range(rng.randrange(7)):
        lines = log.split("\n")
        at = rng.randrange(len(log) + 1)
        log = rng.choice(
            (
                "\n".join((*lines[:-2], rng.choice(lines), *lines[-2:])),
                "\n".join((rng.choice(others), *lines)),
                log[:at] + rng.choice(_JUNK) + log[at:],
                log[:at] + log[at + rng.randrange(1, 5) :],
                "\n".join(rng.sample(lines, len(lines))),
            )
        )
    return log


def test_every_strict_reading_is_upstreams_bit_for_bit() -> None:
    rng = random.Random(20)
    logs = [path.read_text("utf-8") for path in sorted((_FIXTURES / "logs").glob("*.txt"))]
    others = [line for log in logs for line in log.split("\n")]
    cases = [
        [name, _mutated(rng, log, others), rng.choice(_IDS), rng.choice(_VERSIONS)]
        for name in UPSTREAM
        for log in logs * 4
    ]
    for (name, log, row, version), theirs in zip(cases, _upstream(_PARSE, cases), strict=True):
        try:
            ours = parse_upstream(name, log, Context(row, version))
        except UpstreamRaises:
            ours = None
        assert ours == theirs, (name, row, version, log)


def test_every_strict_verdict_is_upstreams() -> None:
    rng = random.Random(21)
    cases: list[Any] = []
    for name in ("verified", "multilingual", "multimodal"):
        path = _FIXTURES / "rows" / f"{name}.jsonl"
        raw = json.loads(path.read_text("utf-8"))
        raw.setdefault("environment_setup_commit", "")
        for kind in ("gold", "empty"):
            log = (_FIXTURES / "verdicts" / f"{name}.{kind}.txt").read_text("utf-8")
            cases += [(path, raw, _mutated(rng, log, log.split("\n"))) for _ in range(150)]
    theirs = _upstream(_GRADE, [(raw, log) for _, raw, log in cases])
    for (path, raw, log), report in zip(cases, theirs, strict=True):
        prediction = Prediction(instance_id=raw["instance_id"], model="m", patch="x")
        row = load_rows(str(path))[0]
        try:
            ours = instance_report(prediction, grade_log_upstream(row, log), log)
        except UpstreamRaises:
            ours = None
        assert ours == report, log


_REPORT = """
import json, sys
from swebench.harness.reporting import make_run_report
predictions, rows = json.load(sys.stdin)
make_run_report(predictions, rows, "run", None, "reports")
"""


def test_a_runs_report_is_upstreams(tmp_path: Path) -> None:
    raw = json.loads((_FIXTURES / "rows" / "verified.jsonl").read_text("utf-8"))
    names = ("good", "bad", "error", "empty", "missing", "broken", "silent")
    row = load_rows(str(_FIXTURES / "rows" / "verified.jsonl"))[0]
    rows = [row.model_copy(update={"instance_id": name}) for name in names]
    predictions = {
        name: Prediction(instance_id=name, model="m/1", patch="" if name == "empty" else "diff")
        for name in names
        if name != "missing"
    }
    files = {
        "good/report.json": '{"good": {"resolved": true}}',
        "bad/report.json": '{"bad": {"resolved": false}}',
        "bad/test_output.txt": "collected 0 items",
        "error/run_instance.log": "x\nKilled\n",
        "broken/report.json": "",
        "broken/test_output.txt": "Timeout error: 9 seconds exceeded",
        "silent/report.json": "{}",
    }
    for name, text in files.items():
        path = run_folder(tmp_path, "run") / "m__1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    said = {
        name: {"instance_id": name, "model_name_or_path": p.model, "model_patch": p.patch}
        for name, p in predictions.items()
    }
    subprocess.run(
        [_PYTHON, "-c", _REPORT],
        input=json.dumps([said, [{**raw, "instance_id": name} for name in names]]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    path = report_path(tmp_path / "reports", "run", predictions)
    theirs = json.loads(path.read_text())
    ours = run_report(tmp_path, "run", rows, predictions)
    left = {"unstopped_instances", "unstopped_containers", "unremoved_images"}
    assert {name: value for name, value in ours.items() if name not in left} == theirs
