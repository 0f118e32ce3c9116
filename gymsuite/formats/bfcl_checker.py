"""The Berkeley leaderboard's rule for single-turn calls, quirks included, under the name `bfcl`.

The rules are those of `ast_checker` in bfcl-eval 2026.3.23 for Python: what it calls valid is valid
here, and the names of the errors are its own. Known quirks: an empty string passes where the
argument may be left out; the items of a list are compared in order; parallel calls are matched
first come, first served.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gymsuite.errors import DefinitionError

Call = Mapping[str, Mapping[str, Any]]
"""A decoded call: `{name: {parameter: value}}`."""

OMITTED = ""
"""Among the allowed values: the parameter may be left out."""


class Verdict(NamedTuple):
    """Whether it is right, and the reference's name for what decided."""

    valid: bool
    error_type: str | None = None


_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_DROPPED = re.compile(r"[ ,./\-_*^]")
_SIMPLE = "simple_function_checker"


def check(
    functions: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    answers: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
    category: str,
) -> Verdict:
    """Judge decoded calls by the category's rule.

    `functions` are the row's function documents and `answers` its ground truth. Raises
    `DefinitionError` for a row that the reference cannot judge either.
    """
    if "parallel" in category:
        return _parallel(functions, calls, answers)
    if "multiple" in category:
        if len(calls) != len(answers):
            return Verdict(valid=False, error_type="multiple_function_checker:wrong_count")
        return _one(_document(functions, answers[0]), calls[0], answers[0])
    if len(calls) != 1:
        return Verdict(valid=False, error_type=f"{_SIMPLE}:wrong_count")
    return _one(functions[0], calls[0], answers[0])


def _parallel(
    functions: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    answers: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
) -> Verdict:
    """Each answer takes the first call that is left and fits."""
    name = "parallel_function_checker_no_order"
    if len(calls) != len(answers):
        return Verdict(valid=False, error_type=f"{name}:wrong_count")
    left = list(calls)
    for answer in answers:
        document = _document(functions, answer)
        fitting = (at for at, call in enumerate(left) if _one(document, call, answer).valid)
        at = next(fitting, None)
        if at is None:
            return Verdict(valid=False, error_type=f"{name}:cannot_find_match")
        del left[at]
    return Verdict(valid=True)


def _document(
    functions: Sequence[Mapping[str, Any]], answer: Mapping[str, object]
) -> Mapping[str, Any]:
    """The document of the function that the answer calls."""
    name = next(iter(answer))
    for function in functions:
        if function["name"] == name:
            return function
    raise DefinitionError(f"the answer calls {name!r}, which is not among the row's functions")


def _one(
    function: Mapping[str, Any], call: Call, answer: Mapping[str, Mapping[str, Sequence[Any]]]
) -> Verdict:
    """Judge one call."""
    allowed = next(iter(answer.values()))
    parameters = function["parameters"]
    if function["name"] not in call:
        return Verdict(valid=False, error_type=f"{_SIMPLE}:wrong_func_name")
    given = call[function["name"]]
    if any(name not in given for name in parameters["required"]):
        return Verdict(valid=False, error_type=f"{_SIMPLE}:missing_required")
    clear = False
    for name, value in given.items():
        if name not in parameters["properties"] or name not in allowed:
            return Verdict(valid=False, error_type=f"{_SIMPLE}:unexpected_param")
        error, by_kind = _argument(parameters["properties"][name], value, allowed[name])
        if error:
            return Verdict(valid=False, error_type=error)
        clear = clear or by_kind
    if any(name not in given and OMITTED not in values for name, values in allowed.items()):
        return Verdict(valid=False, error_type=f"{_SIMPLE}:missing_optional")
    return Verdict(valid=True, error_type=None if clear else f"{_SIMPLE}:unclear")


def _argument(
    document: Mapping[str, Any],
    value: Any,  # noqa: ANN401 - any JSON
    allowed: Sequence[Any],
) -> tuple[str, bool]:
    """What is wrong with an argument, and whether a rule for its kind decided."""
    kind = document["type"]
    expected = _TYPES[kind]
    inner = _TYPES[document["items"]["type"]] if kind in ("array", "tuple") else None
    if kind == "tuple" and type(value) is tuple:
        value = list(value)
    if kind == "float" and type(value) is int:
        value = float(value)
    error, variable = _type_error(value, allowed, expected, inner)
    if error:
        return error, False
    rule = None if variable else _rule(expected, inner)
    if rule is not None:
        return rule(value, allowed), True
    return ("" if value in allowed else "value_error:others"), False


def _rule(expected: type, inner: type | None) -> Callable[[Any, Sequence[Any]], str] | None:
    if expected is dict:
        return _dict_error
    if expected is str:
        return _string_error
    if expected is list:
        return _list_of_dicts_error if inner is dict else _list_error
    return None


def _type_error(
    value: object, allowed: Sequence[Any], expected: type, inner: type | None
) -> tuple[str, bool]:
    """The type's error, and whether the answer is a variable: of another type than declared."""
    answer = next((type(option) for option in allowed if option != OMITTED), None)
    variable = answer is not None and answer is not expected
    if type(value) is not expected:
        return ("", True) if answer is type(value) else ("type_error:simple", False)
    if inner is None or any(_items_fit(value, option, inner) for option in allowed):
        return "", variable
    return ("type_error:nested" if answer is type(value) else "type_error:simple"), False


def _items_fit(value: Any, option: object, inner: type) -> bool:  # noqa: ANN401 - any JSON list
    """Whether the items have the type of a list's items; an option that is no list fits always."""
    if not isinstance(option, list):
        return True
    return all(not _type_error(item, option, inner, None)[0] for item in value)


def _standard(value: object) -> object:
    """A string without spaces, some punctuation and case; anything else as it is."""
    if type(value) is not str:
        return value
    return _DROPPED.sub("", value).lower().replace("'", '"')


def _string_error(value: object, allowed: Sequence[Any]) -> str:
    options = [_standard(option) for option in allowed if type(option) is str]
    return "" if _standard(value) in options else "value_error:string"


def _list_error(value: Sequence[Any], allowed: Sequence[Any]) -> str:
    options = [[_standard(item) for item in option] for option in allowed]
    return "" if [_standard(item) for item in value] in options else "value_error:list/tuple"


def _dict_error(value: Mapping[str, Any], allowed: Sequence[Any]) -> str:
    error = "dict_checker:unclear"
    for option in allowed:
        if option == OMITTED:
            continue
        error = _one_dict_error(value, option)
        if not error:
            return ""
    return error


def _one_dict_error(value: Mapping[str, Any], option: Mapping[str, Sequence[Any]]) -> str:
    error = ""
    for key, item in value.items():
        if key not in option:
            error = "value_error:dict_key"
            break
        if _standard(item) not in [_standard(one) for one in option[key]]:
            error = "value_error:dict_value"
            break
    if any(key not in value and OMITTED not in options for key, options in option.items()):
        return "value_error:dict_key"
    return error


def _list_of_dicts_error(value: Sequence[Any], allowed: Sequence[Any]) -> str:
    if not all(isinstance(item, Mapping) for item in value):
        return "type_error:nested"  # the reference breaks here
    error = "list_dict_checker:unclear"
    for option in allowed:
        if len(value) != len(option):
            error = "value_error:list_dict_count"
            continue
        errors = (_dict_error(item, [one]) for item, one in zip(value, option, strict=True))
        found = next((e for e in errors if e), "")
        if not found:
            return ""
        error = found
    return error
