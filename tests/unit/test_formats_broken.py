"""Foreign rows with a random change in each: they are read, or what is wrong names its file."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import DefinitionError
from gymsuite.formats.hotpotqa import read_hotpotqa
from gymsuite.formats.musique import read_musique
from gymsuite.formats.nemo_gym_calls import nemo_gym_calls_environment, read_nemo_gym_calls
from gymsuite.formats.nemo_gym_qa import read_nemo_gym_qa
from gymsuite.formats.two_wiki import read_two_wiki

FIXTURES = Path(__file__).parents[1] / "fixtures"
OTHERS: tuple[Any, ...] = (None, 1, -1.5, "", [], {}, "x", [[1]], {"a": 1}, True)


def read_tool_rows(path: Path) -> object:
    return nemo_gym_calls_environment("tools/nemo-v1", read_nemo_gym_calls(path))


def changed(value: Any, rng: random.Random) -> Any:
    """The same with one part somewhere gone, or something else."""
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        copy = dict(value) if isinstance(value, dict) else list(value)
        place = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if rng.random() < 0.3:
            del copy[place]
        else:
            copy[place] = changed(copy[place], rng)
        return copy
    return rng.choice(OTHERS)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("qa/hotpotqa.json", read_hotpotqa),
        ("qa/two_wiki.json", read_two_wiki),
        ("qa/musique.jsonl", read_musique),
        ("qa/nemo_gym_qa.jsonl", read_nemo_gym_qa),
        ("nemo_gym_tools.jsonl", read_tool_rows),
    ],
)
def test_a_broken_row_is_read_or_named(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    lines = name.endswith("l")
    rows = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    path, rng, complaints = tmp_path / "rows", random.Random(name), []
    for _ in range(100):
        some = [changed(row, rng) if rng.random() < 0.5 else row for row in rows]
        path.write_text("\n".join(map(json.dumps, some)) if lines else json.dumps(some))
        try:
            read(path)
        except DefinitionError as error:
            complaints.append(str(error))
    assert complaints
    told = [text for text in complaints if str(path) in text or "differs from another" in text]
    assert told == complaints
