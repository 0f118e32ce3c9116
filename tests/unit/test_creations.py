"""Containers that are being made are written down for as long as that takes."""

from pathlib import Path

from gymsuite.sandbox.creations import abandoned, creating, forget
from gymsuite.sandbox.owner import this_process


def test_what_a_living_process_is_making_is_not_abandoned(tmp_path: Path) -> None:
    with creating(tmp_path, "mine"):
        assert abandoned(tmp_path) == []
        assert [path.name for path in tmp_path.glob("*/*")] == ["mine"]
    assert not list(tmp_path.glob("*/*"))


def test_what_a_dead_process_was_making_is_abandoned_until_it_is_forgotten(tmp_path: Path) -> None:
    with creating(tmp_path, "mine"):
        world = this_process().rpartition("/")[0]
        next(tmp_path.glob("*/mine")).write_text(f"{world}/1")
        assert abandoned(tmp_path) == ["mine"]
        forget(tmp_path, "mine")
        assert abandoned(tmp_path) == []
