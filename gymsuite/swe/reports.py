"""Writes the files of a run where SWE-bench's harness writes them, with the same keys.

    logs/run_evaluation/RUN/run.json
    logs/run_evaluation/RUN/MODEL/ID/{report.json, patch.diff, eval.sh, test_output.txt,
                                      run_instance.log}
    MODEL.RUN.json                    the run's report, schema_version 2

A row without a report.json is an error, as upstream has it. Dashboards and `swebench report` read
all of this; what is ours alone lies beside it, in `verdict.json`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from gymsuite.errors import UsageError
from gymsuite.swe.grading import Split, Verdict
from gymsuite.swe.predictions import Prediction
from gymsuite.swe.rows import Row
from gymsuite.swe.symptoms import symptom
from gymsuite.types import Model

REPORT, PATCH, SCRIPT = "report.json", "patch.diff", "eval.sh"
OUTPUT, LOG, RUN, VERDICT = "test_output.txt", "run_instance.log", "run.json", "verdict.json"
_LOGS = Path("logs") / "run_evaluation"
# A report is called MODEL.RUN.json, and staged under a name with six bytes more.
_NAME_BYTES = 150
_RUN_ID_BYTES = 90
# Nothing outlives a run here; upstream counts what its runs leave behind.
_NOTHING_LEFT: Mapping[str, JsonValue] = {
    "unstopped_instances": 0,
    "unstopped_containers": [],
    "unremoved_images": [],
}


class RunInfo(Model):
    """What a run was of: upstream's run.json."""

    dataset: str
    split: str
    task_repo: str | None = None
    created_at: str


def model_folder(model: str) -> str:
    """A model's name as a folder's; none leads elsewhere."""
    name = _short(model)
    return name if name.strip(".") else f"model{name}"


def _short(name: str) -> str:
    """A name as a file's: what is too long for one ends in a digest."""
    plain = name.replace("/", "__").replace("\0", "_")
    data = plain.encode("utf-8", "replace")
    if len(data) <= _NAME_BYTES:
        return data.decode()
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{data[: _NAME_BYTES - 13].decode(errors='ignore')}-{digest}"


def run_folder(root: Path, run_id: str) -> Path:
    """Where a run's files lie; raises `UsageError` for what cannot name them."""
    long = len(run_id.encode("utf-8", "replace")) > _RUN_ID_BYTES
    if long or not run_id.strip(".") or not run_id.isprintable() or "/" in run_id:
        raise UsageError(
            f"run id {run_id[:_RUN_ID_BYTES]!r}: files are named for it, so it is "
            f"1 to {_RUN_ID_BYTES} characters without a slash"
        )
    return root / _LOGS / run_id


def instance_folder(root: Path, run_id: str, prediction: Prediction) -> Path:
    """Where the files of one row lie."""
    name = _short(prediction.instance_id)
    return run_folder(root, run_id) / model_folder(prediction.model) / name


def instance_report(prediction: Prediction, verdict: Verdict | None, log: str = "") -> JsonValue:
    """One row's report.json; without a verdict, that of a row that has no patch."""
    report: dict[str, JsonValue] = {
        "patch_is_None": prediction.patch is None,
        "patch_exists": prediction.patch is not None,
        "patch_successfully_applied": verdict is not None and not verdict.invalid,
        "resolved": verdict is not None and verdict.resolved,
        "infra_failure": False,
    }
    if verdict and verdict.invalid and (sign := symptom(log)):
        report["infra_failure"] = sign.is_environment
        report["infra_failure_reason"] = sign.reason
    if verdict and not verdict.invalid:
        report["tests_status"] = {
            "FAIL_TO_PASS": _lists(verdict.fail_to_pass),
            "PASS_TO_PASS": _lists(verdict.pass_to_pass),
            "FAIL_TO_FAIL": _lists(Split()),
            "PASS_TO_FAIL": _lists(Split()),
        }
    return {prediction.instance_id: report}


def _lists(split: Split) -> JsonValue:
    return {"success": list(split.success), "failure": list(split.failure)}


def run_report(
    root: Path, run_id: str, rows: Sequence[Row], predictions: Mapping[str, Prediction]
) -> dict[str, JsonValue]:
    """The whole run's report, from the files of its rows."""
    ids = _Ids()
    for row in rows:
        prediction = predictions.get(row.instance_id)
        if prediction is None:
            ids.incomplete.append(row.instance_id)
        elif prediction.is_empty:
            ids.empty.append(row.instance_id)
        else:
            ids.add(row.instance_id, instance_folder(root, run_id, prediction))
    return ids.report(total=len(rows), submitted=sorted(predictions))


class _Ids:
    """The rows of a run, by what came of them."""

    def __init__(self) -> None:
        self.incomplete: list[str] = []
        self.empty: list[str] = []
        self._resolved: list[str] = []
        self._unresolved: list[str] = []
        self._completed: list[str] = []
        self._errors: list[str] = []
        self._reasons: dict[str, tuple[str, bool]] = {}

    def add(self, name: str, folder: Path) -> None:
        resolved = _resolved(folder / REPORT, name)
        if (folder / REPORT).exists():
            self._completed.append(name)
        kinds = {True: self._resolved, False: self._unresolved, None: self._errors}
        kinds[resolved].append(name)
        if not resolved and (sign := symptom(_logs(folder))):
            self._reasons[name] = sign

    def report(self, *, total: int, submitted: Sequence[str]) -> dict[str, JsonValue]:
        lists: dict[str, Sequence[str]] = {
            "completed": self._completed,
            "resolved": self._resolved,
            "unresolved": self._unresolved,
            "infra_failure": [name for name, (_, world) in self._reasons.items() if world],
            "ambiguous_failure": [name for name, (_, world) in self._reasons.items() if not world],
            "empty_patch": self.empty,
            "error": self._errors,
        }
        counts: dict[str, JsonValue] = {
            "total_instances": total,
            "submitted_instances": len(submitted),
            **{f"{kind}_instances": len(names) for kind, names in lists.items()},
        }
        names: dict[str, JsonValue] = {
            f"{kind}_ids": list[JsonValue](sorted(each))
            for kind, each in {
                **lists,
                "incomplete": self.incomplete,
                "submitted": submitted,
            }.items()
        }
        reasons: JsonValue = {name: self._reasons[name][0] for name in sorted(self._reasons)}
        return {**counts, **names, "failure_reasons": reasons, "schema_version": 2, **_NOTHING_LEFT}


def _resolved(report: Path, name: str) -> bool | None:
    """Whether a row's report says so; None if it says nothing."""
    try:
        return bool(json.loads(report.read_text(encoding="utf-8"))[name]["resolved"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _logs(folder: Path) -> str:
    files = (folder / OUTPUT, folder / LOG)
    return "\n".join(
        file.read_text(encoding="utf-8", errors="replace") for file in files if file.exists()
    )


def report_path(folder: Path, run_id: str, predictions: Mapping[str, Prediction]) -> Path:
    """Where a run's report goes; it is named for the model of the first prediction."""
    first = next(iter(predictions.values()), None)
    return folder / f"{model_folder(first.model if first else 'none')}.{run_id}.json"


def write_json(path: Path, document: JsonValue) -> None:
    """Write a report with upstream's indentation, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.part")
    staged.write_text(json.dumps(document, indent=4) + "\n", encoding="utf-8")
    staged.replace(path)
