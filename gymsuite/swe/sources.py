"""Where foreign rows come from: files, folders, task repositories and Hugging Face's local cache.

Nothing is downloaded. A data set's name is looked up in the cache that Hugging Face's own tools
fill, and the error says how to fill it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from gymsuite.errors import DefinitionError, UsageError
from gymsuite.search.parquet import read_rows
from gymsuite.swe.columns import Columns
from gymsuite.swe.task_repository import is_task_repository, read_task_repository

ALIASES: Mapping[str, str] = {
    "full": "SWE-bench/SWE-bench",
    "swe-bench": "SWE-bench/SWE-bench",
    "verified": "SWE-bench/SWE-bench_Verified",
    "lite": "SWE-bench/SWE-bench_Lite",
    "multilingual": "SWE-bench/SWE-bench_Multilingual",
    "multimodal": "SWE-bench/SWE-bench_Multimodal",
}
CACHE = Path.home() / ".cache" / "huggingface" / "hub"
_KINDS = (".json", ".jsonl", ".parquet")


def read_source(source: str, split: str, cache: Path = CACHE) -> Iterator[Columns]:
    """Yield the rows of a file, a folder, or a data set in Hugging Face's cache.

    Raises `UsageError` if it is none of them, and `DefinitionError` for a file that holds no rows.
    """
    path = Path(source)
    if path.is_file():
        yield from _file(path)
    elif path.is_dir():
        yield from _folder(path, split)
    else:
        yield from _cached(source, split, cache)


def _file(path: Path) -> Iterator[Columns]:
    if path.suffix == ".parquet":
        for number, row in enumerate(read_rows(path), 1):
            yield Columns(f"{path}: row {number}", _plain(row))
    elif path.suffix == ".jsonl":
        yield from _json_lines(path)
    elif path.suffix == ".json":
        yield from _json(path)
    else:
        raise UsageError(f"{path}: rows come from files ending in {', '.join(_KINDS)}")


def _json_lines(path: Path) -> Iterator[Columns]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                yield _row(where, _decoded(where, line))


def _json(path: Path) -> Iterator[Columns]:
    document = _decoded(str(path), path.read_bytes())
    rows = document if isinstance(document, list) else [document]
    for number, row in enumerate(rows, 1):
        yield _row(f"{path}: row {number}", row)


def _row(where: str, row: JsonValue) -> Columns:
    if not isinstance(row, dict):
        raise DefinitionError(f"{where}: an object is expected, with a value for each column")
    return Columns(where, row)


def _decoded(where: str, data: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(data.decode("utf-8-sig"))
        if b"\\ud" in data.lower():  # half a pair of surrogates is JSON, and no text
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise DefinitionError(f"{where}: not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{where}: not JSON: {error}") from error
    return value


def _folder(folder: Path, split: str) -> Iterator[Columns]:
    if is_task_repository(folder):
        yield from read_task_repository(folder, split)
        return
    files = _of_split(folder, split)
    if not files:
        raise UsageError(
            f"{folder}: neither a task repository (tasks/ID/task.yaml) nor a folder with "
            f"{split}.parquet, {split}.jsonl or data/{split}-*.parquet"
        )
    for file in files:
        yield from _file(file)


def _of_split(folder: Path, split: str) -> list[Path]:
    """A split's files: one that is named for it, or its numbered parts."""
    for inner in (folder, folder / "data"):
        for kind in _KINDS:
            if (inner / f"{split}{kind}").is_file():
                return [inner / f"{split}{kind}"]
            if parts := sorted(inner.glob(f"{split}-*{kind}")):
                return parts
    return []


def _cached(source: str, split: str, cache: Path) -> Iterator[Columns]:
    name = ALIASES.get(source.lower(), source)
    if name.count("/") != 1 or name.startswith(("/", ".")):
        raise UsageError(
            f"{source}: no such file or folder, and no data set's name (owner/name, or one of "
            f"{', '.join(ALIASES)})"
        )
    store = cache / f"datasets--{name.replace('/', '--')}" / "snapshots"
    snapshots = sorted(store.glob("*"), key=lambda each: each.stat().st_mtime, reverse=True)
    for snapshot in snapshots:
        if _of_split(snapshot, split):
            yield from _folder(snapshot, split)
            return
    raise UsageError(
        f"{name}: split {split!r} is not in Hugging Face's cache ({cache}); fetch it with "
        f"'hf download --repo-type dataset {name}', or give a .parquet, .jsonl or .json file"
    )


def _plain(row: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A Parquet row as JSON would hold it; times become text."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: object) -> JsonValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _value(each) for name, each in value.items()}
    return str(value)
