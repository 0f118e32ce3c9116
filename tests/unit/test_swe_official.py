"""The images that rows name come from Docker: here a program of its name, with one image."""

import asyncio
import os
from pathlib import Path

import pytest

from gymsuite.errors import SandboxError
from gymsuite.sandbox.records import imported
from gymsuite.swe.official import fetch_official
from gymsuite.swe.rows import Row
from gymsuite.swe.supply import official_name
from tests.image_archives import docker_save, file, layer

_DOCKER = """#!/bin/sh
echo "$*" >> {folder}/asked
case "$*" in
*absent*) echo "no such image" >&2; exit 1 ;;
save*) cp {folder}/saved.tar "$3" ;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is noted what Docker was asked."""
    docker_save(tmp_path / "saved.tar", [layer(file("a"))])
    program = tmp_path / "docker"
    program.write_text(_DOCKER.format(folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "asked"


def rows(*images: str) -> list[Row]:
    return [
        Row(
            instance_id=f"o__n-{number}",
            repo="o/n",
            dialect="swe-bench",
            base_commit="0" * 40,
            problem_statement="p",
            image=image,
        )
        for number, image in enumerate(images)
    ]


def test_one_image_that_cannot_be_had_costs_its_own_rows_only(tmp_path: Path, asked: Path) -> None:
    wanted, said = rows("absent:1", "there:1", "", "there:1"), list[str]()
    asyncio.run(fetch_official(wanted, tmp_path / "cache", said.append))
    assert imported(tmp_path / "cache", official_name(wanted[1])) is not None
    assert any("o__n-0: Docker has no image absent:1" in line for line in said)
    assert any("o__n-2 names no image" in line for line in said)
    assert asked.read_text().count("save --output") == 1


def test_where_no_image_can_be_had_the_way_out_is_named(tmp_path: Path, asked: Path) -> None:
    with pytest.raises(SandboxError, match="cannot pull it: no such image; .*--repo-dir"):
        asyncio.run(
            fetch_official(rows("absent:1", "absent:2"), tmp_path / "cache", list[str]().append)
        )
    assert asked.read_text().count("pull") == 2
