"""The rule beside `bfcl` that pays no quirk: values mean the same, and every order is tried.

Against `bfcl`: an empty string is a value and not an omission; parallel calls are matched as well
as possible, not first come first served; 1 and 1.0 are the same number where a number is asked
for, while true is none; dicts are compared to any depth.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gymsuite.formats.bfcl_checker import OMITTED, Call, Verdict
from gymsuite.worlds.assignment import assign


def check_strictly(
    functions: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    answers: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
) -> Verdict:
    """Whether the calls are the expected ones, in any order."""
    if len(calls) != len(answers):
        return Verdict(valid=False, error_type="strict:wrong_count")
    documents = {function["name"]: function["parameters"] for function in functions}
    costs = [[int(not _fits(documents, call, answer)) for call in calls] for answer in answers]
    matched = sum(costs[row][column] for row, column in enumerate(assign(costs)))
    return Verdict(valid=True) if not matched else Verdict(False, "strict:no_match")


def _fits(
    documents: Mapping[str, Any], call: Call, answer: Mapping[str, Mapping[str, Sequence[Any]]]
) -> bool:
    name, allowed = next(iter(answer.items()))
    if set(call) != {name}:
        return False
    given = call[name]
    required = documents[name]["required"]
    omitted = (key for key in allowed if key not in given)
    return all(
        key in allowed and _any_means(value, allowed[key], optional=key not in required)
        for key, value in given.items()
    ) and all(OMITTED in allowed[key] for key in omitted)


def _any_means(value: object, options: Sequence[Any], *, optional: bool) -> bool:
    """Whether the value is one of the options; the mark of an omission is none of them."""
    real = [option for option in options if option != OMITTED or not optional]
    return any(_means(value, option) for option in real)


def _means(value: Any, option: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether two values mean the same; a dict's values in an answer are lists of options."""
    if isinstance(value, Mapping) and isinstance(option, Mapping):
        return _dict_means(value, option)
    if isinstance(value, list | tuple) and isinstance(option, list | tuple):
        if len(value) != len(option):
            return False
        return all(_means(one, other) for one, other in zip(value, option, strict=True))
    if isinstance(value, str) and isinstance(option, str):
        return _plain(value) == _plain(option)
    return isinstance(value, bool) == isinstance(option, bool) and bool(value == option)


def _dict_means(value: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    if any(key not in option for key in value):
        return False
    return all(
        _any_means(value[key], _options(options), optional=True)
        if key in value
        else OMITTED in _options(options)
        for key, options in option.items()
    )


def _options(options: object) -> Sequence[Any]:
    return options if isinstance(options, list) else [options]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
