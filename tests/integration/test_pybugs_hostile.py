"""What an agent leaves to break the judge is scored like doing nothing, and fails no rollout."""

from collections.abc import Mapping

import pytest

from gymsuite import OpenSandbox, Score

from .conftest import InSuite
from .test_forgery import assert_like_nothing, run, scored

COMMANDS: Mapping[str, str] = {
    "the file under repair is a fifo": "rm toolz/itertoolz.py; mkfifo toolz/itertoolz.py",
    "the file under repair is too large to read": "truncate -s 40M toolz/itertoolz.py",
    "there are 15,000 new files": (
        "echo 'x = 1' >> toolz/itertoolz.py; mkdir a; cd a;"
        " python3 -c '[open(str(n), \"w\").close() for n in range(15_000)]'"
    ),
    "the package is a file": "rm -r toolz; touch toolz",
    "the package is a link to nothing": "rm -r toolz; ln -s nothing toolz",
    "the package is a link to itself": "rm -r toolz; ln -s toolz toolz",
    "the interpreter leaves as it starts": (
        "mkdir sitecustomize; echo 'import os; os._exit(0)' > sitecustomize/__init__.py"
    ),
}


@pytest.mark.parametrize("attack", COMMANDS)
def test_a_checkout_that_breaks_the_judge_is_scored_like_doing_nothing(
    in_suite: InSuite, attack: str
) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, lambda sandbox: run(sandbox, COMMANDS[attack]))

    assert_like_nothing(in_suite(body))
