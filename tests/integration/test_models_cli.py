"""`gymsuite models` as a process, as far as it goes without a model."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from tests.command_line import command, gymsuite, variables


def test_the_models_are_listed(tmp_path: Path) -> None:
    done = gymsuite("models", "list", "--cache", tmp_path, cwd=tmp_path)
    assert "smollm2" in done.stdout
    assert "Apache-2.0" in done.stdout
    listed = gymsuite("models", "list", "--json", "--cache", tmp_path, cwd=tmp_path)
    (model,) = json.loads(listed.stdout)["models"]
    assert (model["name"], model["fetched"]) == ("smollm2", False)
    assert model["path"].startswith(str(tmp_path))


def test_a_model_without_a_server_says_how_to_serve_it(tmp_path: Path) -> None:
    arguments = ("eval", "coding/warmup-v1", "--agent", "openai", "--model", "smollm2")
    done = gymsuite(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "gymsuite models serve smollm2" in done.stderr


def test_nothing_is_fetched_for_a_server_that_cannot_be(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options, said in (
            (["--port", port], f"port {port} of 127.0.0.1 is taken"),
            (["--host", "0.0.0.0"], "--api-key-env"),  # noqa: S104 - what must be refused
            (["--api-key-env", "NOT_SET_HERE"], "not set"),
            (["--context", "9216"], "up to 8192"),
            (["--context", "300"], "a multiple of 256"),
        ):
            done = gymsuite(
                "models", "serve", "smollm2", *options, "--cache", tmp_path / "cache", cwd=tmp_path
            )
            assert done.returncode == 2
            assert said in done.stderr
    assert not (tmp_path / "cache").exists()


def test_without_the_extra_serving_says_what_to_install(tmp_path: Path) -> None:
    python, option, code = command()
    blocked = f"import sys; sys.modules['xllamacpp'] = None; {code}"
    done = subprocess.run(
        [python, option, blocked, "models", "serve", "smollm2", "--cache", str(tmp_path)],
        env=variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'gymsuite[models]'" in done.stderr


def test_listing_environments_does_not_wait_for_models(tmp_path: Path) -> None:
    python, option, code = command()
    watched = (
        "import atexit, sys\n"
        "loaded = lambda: [m for m in sys.modules if m.startswith(('gymsuite.models', 'xllama'))]\n"
        f"atexit.register(lambda: print('loaded', loaded()))\n{code}"
    )
    done = subprocess.run(
        [python, option, watched, "list", "--json"],
        env=variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.endswith("loaded []\n")
