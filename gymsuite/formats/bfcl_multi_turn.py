"""The Berkeley leaderboard's rule for conversations of several turns: replay both, compare.

After each turn in which something is expected, every public attribute of every world is the same
as after the expected calls, and all that the expected calls of the turn returned is among what was
returned so far. What happens in a turn in which nothing is expected is not judged, as in
bfcl-eval 2026.3.23; the rule `strict` fails calls there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gymsuite.formats.bfcl_checker import Verdict
from gymsuite.formats.bfcl_decode import DecodeError, decode
from gymsuite.formats.bfcl_worlds import MakeWorld, Worlds, reference_world

MOST_STEPS = 20
"""Replies with calls in one turn; one more ends the conversation, and it has failed."""

Turns = Sequence[Sequence[Sequence[str]]]
"""For each turn its replies, for each reply its calls."""


def calls_in(text: str) -> list[str]:
    """The calls in a reply, each as text; none where the reply is words."""
    try:
        found = decode(text)
    except DecodeError:
        return []
    return [
        f"{name}({', '.join(f'{key}={_written(value)}' for key, value in arguments.items())})"
        for call in found
        for name, arguments in call.items()
    ]


def check_turns(
    turns: Turns,
    expected: Sequence[Sequence[str]],
    row: Mapping[str, Any],
    make: MakeWorld = reference_world,
) -> Verdict:
    """Judge a conversation by the leaderboard's rule.

    `row` has the involved_classes, the initial_config and the id, whose category says whether the
    worlds are stuffed for the long-context variant.
    """
    if len(turns) != len(expected):
        return Verdict(valid=False, error_type="multi_turn:force_terminated")
    theirs, ours = (_worlds(row, make) for _ in range(2))
    returned: list[str] = []
    for replies, calls in zip(turns, expected, strict=True):
        returned += [theirs.run(call) for reply in replies for call in reply]
        wanted = [ours.run(call) for call in calls]
        if not calls:
            continue
        if not replies or (len(replies) == 1 and not replies[0]):
            return Verdict(valid=False, error_type="multi_turn:empty_turn_model_response")
        if _differ(theirs, ours):
            return Verdict(valid=False, error_type="multi_turn:instance_state_mismatch")
        if Counter(wanted) - Counter(returned):
            return Verdict(valid=False, error_type="multi_turn:execution_response_mismatch")
    return Verdict(valid=True)


def check_turns_strictly(
    turns: Turns,
    expected: Sequence[Sequence[str]],
    row: Mapping[str, Any],
    make: MakeWorld = reference_world,
) -> Verdict:
    """The same, and nothing is called in a turn in which nothing can be done."""
    verdict = check_turns(turns, expected, row, make)
    if not verdict.valid:
        return verdict
    for replies, calls in zip(turns, expected, strict=True):
        if not calls and any(replies):
            return Verdict(valid=False, error_type="multi_turn:irrelevance_error:decoder_success")
    return verdict


def _worlds(row: Mapping[str, Any], make: MakeWorld) -> Worlds:
    return Worlds(
        row["involved_classes"],
        row["initial_config"],
        make,
        long_context="long_context" in row["id"] or "composite" in row["id"],
    )


def _differ(one: Worlds, other: Worlds) -> bool:
    return any(
        getattr(one.worlds[name], key) != value
        for name, attributes in other.state.items()
        for key, value in attributes.items()
    )


def _written(value: Any) -> str:  # noqa: ANN401 - any literal
    """A value as Python text; a call that was read as a dict becomes a call again."""
    if isinstance(value, dict):
        if value and all(isinstance(inner, dict) for inner in value.values()):
            name, arguments = next(iter(value.items()))
            return f"{name}({', '.join(f'{k}={_written(v)}' for k, v in arguments.items())})"
        return "{" + ", ".join(f"{k!r}: {_written(v)}" for k, v in value.items()) + "}"
    return repr(value)
