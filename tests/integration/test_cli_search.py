"""`gymsuite search`: a folder of one's own, searchable with one command."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.command_line import gymsuite


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "birds.md").write_text("# Birds\nThe grey heron nests by the weir.\n")
    (docs / "mill.html").write_text("<title>The [mill]</title><p>It grinds corn.")
    return docs


def test_one_command_indexes_and_the_next_finds(folder: Path, tmp_path: Path) -> None:
    cache = ("--cache", tmp_path / "cache")
    done = gymsuite("search", "index", folder, *cache, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 documents are searchable" in done.stdout
    found = gymsuite("search", "query", folder, "heron", "nests", *cache, cwd=tmp_path)
    assert "birds.md" in found.stdout
    assert "[mill]" in gymsuite("search", "query", folder, "corn", *cache, cwd=tmp_path).stdout
    none = gymsuite("search", "query", folder, "zebra", *cache, cwd=tmp_path)
    assert "nothing found" in none.stdout


def test_an_environments_index_lies_in_the_cache_that_is_given(tmp_path: Path) -> None:
    command = ("eval", "search/hoptrail-v1", "--agent", "oracle", "-n", "2", "--split", "test")
    done = gymsuite(*command, "--cache", "mine", "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.is_dir() for path in (tmp_path / "mine" / "search").iterdir()].count(True) == 1


def test_hits_as_json_are_one_object(folder: Path, tmp_path: Path) -> None:
    cache = ("--cache", tmp_path / "cache")
    done = gymsuite("search", "query", folder, "corn", "--json", *cache, cwd=tmp_path)
    assert [hit["id"] for hit in json.loads(done.stdout)["hits"]] == ["mill.html"]


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    done = gymsuite("search", "index", tmp_path / "none", cwd=tmp_path)
    assert done.returncode == 2
    assert "neither a folder nor a corpus file" in done.stderr
    assert "Traceback" not in done.stderr


def test_serving_without_its_extra_names_it(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; from gymsuite.cli.main import main; "
        f"sys.argv[1:] = ['search', 'serve', {str(folder)!r}]; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: serving needs the extra `serve`: pip install 'gymsuite[serve]'\n"


def test_a_folder_is_served_until_interrupted(folder: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("gymsuite")
    command = [str(program), "search", "serve", str(folder), "--port", "0"]
    command += ["--cache", str(tmp_path / "cache")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        body = json.dumps({"query": "heron", "topk": 1}).encode()
        request = urllib.request.Request(address, body, {"content-type": "application/json"})  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - loopback
            assert json.load(response)["result"][0][0]["id"] == "birds.md"
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) in (130, 143)
