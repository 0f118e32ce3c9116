"""What a failed model request means: whose fault it is, and whether another one may fare better."""

import email.utils
import math
import random
import time
from typing import NamedTuple

from gymsuite.errors import Truncated
from gymsuite.wire import ErrorBody, decode_error

_CONNECT_RETRIES = 3
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_LONGEST_RETRY_AFTER_SECONDS = 60.0
_PASSING_STATUSES = frozenset({408, 409, 425, 429}) | frozenset(range(500, 600))
_TOO_LONG_STATUSES = frozenset({400, 413, 422})
_TOO_LONG = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "context_size",
    "maximum model length",
    "prompt is too long",
    "max_tokens must be at least 1, got -",  # vLLM: what the prompt leaves of the context
)
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
_HINTS = {
    401: "; is the API key right?",
    403: "; may this API key use this model?",
    404: "; is the model's name right, and does the base URL end as the server wants (often /v1)?",
}


class Problem(NamedTuple):
    """Why a request brought no message.

    `retries` is how many more requests it is worth; `retryable` says whether a later rollout may
    fare better; `retry_after` is what the server asked for, in seconds.
    """

    text: str
    retries: float = math.inf
    retryable: bool = True
    retry_after: float | None = None


def not_connected(reason: str) -> Problem:
    """Nothing answers at the address."""
    text = f"cannot connect; is the server running, and is the base URL right? ({reason})"
    return Problem(text, _CONNECT_RETRIES)


def refused(status: int, said: ErrorBody, retry_after: float | None = None) -> Problem:
    """The server answered with an error; raises `Truncated` if the conversation is too long."""
    clues = f"{said.code} {said.message}".lower()
    if status in _TOO_LONG_STATUSES and any(clue in clues for clue in _TOO_LONG):
        raise Truncated(f"the conversation no longer fits into the model's context: {said.message}")
    text = f"status {status}: {said.message or 'without a message'}{_HINTS.get(status, '')}"
    passing = status in _PASSING_STATUSES and not any(clue in clues for clue in _OUT_OF_MONEY)
    return Problem(text, math.inf if passing else 0, passing, retry_after)


def unreadable(body: bytes) -> Problem:
    """The server answered 200 with something else; gateways put errors there, with their status."""
    said = decode_error(body)
    code = said.code.split(" ")[0]
    if code.isdecimal():
        return refused(int(code), said)
    return Problem(f"the response is no chat completion: {said.message or 'it is empty'}", 0)


def retry_after_seconds(header: str) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return seconds if seconds >= 0 else None


def delay_seconds(attempt: int, problem: Problem) -> float:
    """Full jitter; after what the server asks for, so that a crowd does not return as one."""
    if problem.retry_after is not None:
        asked = min(problem.retry_after, _LONGEST_RETRY_AFTER_SECONDS)
        return asked + random.uniform(0, _FIRST_DELAY_SECONDS)
    longest = min(_FIRST_DELAY_SECONDS * 2**attempt, _LONGEST_DELAY_SECONDS)
    return random.uniform(0, longest)
