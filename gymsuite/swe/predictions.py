"""Predictions in every layout that SWE-bench's harness and its agents write.

A list of rows, a dict of rows by id, JSON Lines, a folder with `preds.json` or with one `.pred` or
`.patch` file for each row, or the word `gold`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue

from gymsuite.errors import DefinitionError, UsageError
from gymsuite.swe.rows import Row
from gymsuite.types import Model

GOLD = "gold"
_PATCHES = ("model_patch", "patch", "fix_patch")
_FILES = ("preds.json", "all_preds.jsonl", "preds.jsonl", "predictions.json", "predictions.jsonl")
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_RIGHT = "a row has instance_id, model_name_or_path and model_patch"


class Prediction(Model):
    """What a model would change for one row. `patch` is None where the model gave none."""

    instance_id: str = Field(min_length=1)
    model: str
    patch: str | None = Field(default=None, repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to judge. A patch of spaces is one that does not apply."""
        return not self.patch


def read_predictions(source: str, rows: Sequence[Row] = ()) -> Mapping[str, Prediction]:
    """Read predictions by their row's id; `gold` is every row's own patch.

    Raises `DefinitionError` for what no prediction can be, and for two of the same row.
    """
    if source == GOLD:
        found = [Prediction(instance_id=r.instance_id, model=GOLD, patch=r.patch) for r in rows]
    else:
        found = list(_read(Path(source)))
    predictions: dict[str, Prediction] = {}
    for each in found:
        if each.instance_id in predictions:
            twice = f"two predictions for {each.instance_id!r}; keep one of them"
            raise DefinitionError(f"{source}: {twice}")
        predictions[each.instance_id] = each
    return predictions


def unknown_ids(predictions: Iterable[str], rows: Iterable[Row]) -> tuple[str, ...]:
    """The ids that no row has; SWE-bench's harness refuses a run with such."""
    known = {row.instance_id for row in rows}
    return tuple(sorted(set(predictions) - known))


def _read(path: Path) -> Iterator[Prediction]:
    if path.is_dir():
        yield from _folder(path)
    elif path.suffix == ".jsonl":
        for number, line in enumerate(_text(path).split("\n"), 1):
            if line.strip():
                yield _prediction(f"{path}:{number}", _decoded(f"{path}:{number}", line))
    elif path.suffix == ".json":
        yield from _document(path)
    else:
        raise UsageError(f"{path}: predictions are a .json or .jsonl file, a folder, or {GOLD!r}")


def _folder(folder: Path) -> Iterator[Prediction]:
    for name in _FILES:
        if (folder / name).is_file():
            yield from _read(folder / name)
            return
    files = sorted(folder.glob("**/*.pred"))
    patches = sorted(folder.glob("**/*.patch"))
    if not files and not patches:
        raise UsageError(f"{folder}: none of {', '.join(_FILES)}, and no .pred or .patch file")
    for file in files:
        yield _prediction(str(file), _decoded(str(file), _text(file)), file.stem)
    if not files:
        for file in patches:
            yield Prediction(instance_id=file.stem, model=folder.name, patch=_text(file))


def _document(path: Path) -> Iterator[Prediction]:
    document = _decoded(str(path), _text(path))
    if isinstance(document, list):
        for number, row in enumerate(document, 1):
            yield _prediction(f"{path}: row {number}", row)
    elif isinstance(document, dict) and "instance_id" in document:
        yield _prediction(str(path), document)
    elif isinstance(document, dict):
        for name, row in document.items():
            yield _prediction(f"{path}: {name}", row, name)
    else:
        raise DefinitionError(f"{path}: a list or a dict by id is expected; {_RIGHT}")


def _prediction(where: str, row: JsonValue, known_as: str = "") -> Prediction:
    if not isinstance(row, dict):
        raise DefinitionError(f"{where}: an object is expected; {_RIGHT}")
    column = next((name for name in _PATCHES if name in row), None)
    patch = row[column] if column else None
    name = row.get("instance_id") or known_as or _multi_swe_id(row)
    if not isinstance(name, str) or not name:
        raise DefinitionError(f"{where}: column instance_id is missing; {_RIGHT}")
    if column is None:
        raise DefinitionError(f"{where}: column model_patch is missing; {_RIGHT}")
    if patch is not None and not isinstance(patch, str):
        raise DefinitionError(f"{where}: column {column}: text or null is expected, not {patch!r}")
    model = row.get("model_name_or_path") or row.get("prefix") or "unknown"
    return Prediction(
        instance_id=_as_text(name), model=_as_text(str(model)), patch=patch and _as_text(patch)
    )


def _as_text(text: str) -> str:
    """Text that can be written: a model that stops within a character leaves half a surrogate pair.

    The surrogates that stand for single bytes stay, as Python writes them for a Latin-1 patch.
    """
    return _HALVES.sub("\ufffd", text)


def _multi_swe_id(row: Mapping[str, JsonValue]) -> str:
    parts = [row.get(column) for column in ("org", "repo", "number")]
    return "{}/{}:pr-{}".format(*parts) if all(parts) else ""


def _decoded(where: str, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{where}: not JSON: {error}") from error
    return value


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: not UTF-8: {error}") from error
