"""What the Engine answers while a container comes to its end, with an Engine of our own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pytest
from docker.api import APIClient
from docker.errors import APIError, NotFound
from requests import Response

from gymsuite.sandbox import containercalls


def refusal(status: int) -> APIError:
    response = Response()
    response.status_code = status
    return APIError(f"status {status}", response=response, explanation="it is not running")


@dataclass
class Answers:
    """An Engine that answers one request to remove a container after the other."""

    answers: Iterator[APIError | None]
    asked: int = 0

    def remove_container(self, _: str, *, v: bool, force: bool) -> None:
        assert v
        assert force
        self.asked += 1
        if answer := next(self.answers):
            raise answer


@pytest.mark.parametrize("status", [409, 500])
def test_a_container_that_ended_just_when_it_was_to_be_removed_is_removed(status: int) -> None:
    engine = Answers(iter([refusal(status), refusal(status), None, NotFound("gone")]))
    containercalls.remove(cast("APIClient", engine), "c")
    assert engine.asked == 4


def test_one_that_cannot_be_removed_is_an_error_in_the_engines_words() -> None:
    engine = Answers(iter(lambda: refusal(500), None))
    with pytest.raises(TimeoutError, match="it is not running"):
        containercalls.remove(cast("APIClient", engine), "c", within=0.1)


def test_what_the_engine_does_not_understand_is_not_asked_again() -> None:
    engine = Answers(iter([refusal(400)]))
    with pytest.raises(APIError, match="it is not running"):
        containercalls.remove(cast("APIClient", engine), "c")
