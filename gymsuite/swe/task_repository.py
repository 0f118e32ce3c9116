"""Reads a v5 task repository: a folder for each instance, with a file for each long column."""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import JsonValue

from gymsuite.errors import DefinitionError
from gymsuite.swe.columns import Columns

_FILES = {
    "patch": "gold.patch",
    "test_patch": "test.patch",
    "eval_script": "eval.sh",
    "problem_statement": "problem_statement.md",
}
_TASK, _TESTS, _HINTS, _DOCKERFILE = "task.yaml", "tests.json", "hints.md", "Dockerfile"


def is_task_repository(folder: Path) -> bool:
    """Whether a folder is one."""
    return (folder / "tasks").is_dir()


def read_task_repository(folder: Path, split: str = "") -> Iterator[Columns]:
    """Yield the rows of a split, or of all without one, in the order of their names."""
    for task in sorted((folder / "tasks").iterdir()):
        if (task / _TASK).is_file():
            row = _task(task)
            if not split or row.values.get("split", split) == split:
                yield row


def _task(folder: Path) -> Columns:
    try:
        values: JsonValue = yaml.safe_load(_text(folder / _TASK))
    except yaml.YAMLError as error:
        raise DefinitionError(f"{folder / _TASK}: not YAML: {error}") from error
    if not isinstance(values, dict):
        raise DefinitionError(f"{folder / _TASK}: an object with instance_id, repo ... is expected")
    row: dict[str, JsonValue] = {name: _scalar(value) for name, value in values.items()}
    row |= {column: _text(folder / name) for column, name in _FILES.items()}
    row["hints_text"] = _optional(folder / _HINTS)
    row["dockerfile"] = _optional(folder / _DOCKERFILE)
    return Columns(str(folder), row | _tests(folder / _TESTS))


def _tests(path: Path) -> dict[str, JsonValue]:
    try:
        tests: JsonValue = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{path}: not JSON: {error}") from error
    if not isinstance(tests, dict):
        raise DefinitionError(f"{path}: an object with FAIL_TO_PASS and PASS_TO_PASS is expected")
    return tests


def _scalar(value: JsonValue) -> JsonValue:
    """YAML reads `2.0` and dates as what they look like; columns are text."""
    if value is None or isinstance(value, bool | str | list | dict):
        return value
    return str(value)


def _optional(path: Path) -> str:
    return _text(path) if path.is_file() else ""


def _text(path: Path) -> str:
    """A file as it is: a patch keeps its line ends."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: {error}; a task has this file, in UTF-8") from error
