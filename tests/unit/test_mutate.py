"""Bugs as data: what each operator writes, and that nothing else changes."""

import ast
import importlib
from types import ModuleType

import pytest

from gymsuite import DefinitionError, Registry
from gymsuite.verify.source import Source


def part(name: str) -> ModuleType:
    environment = Registry.default().load("coding/pybugs-v1")
    return importlib.import_module(f"{environment.verifier.__module__}.{name}")


mutate, inverse, cutting = part("mutate"), part("inverse"), part("cutting")
OPERATORS = part("operators").OPERATORS

SAMPLES = {
    "boundary": ("if a < b: pass", "if a <= b: pass"),
    "opposite": ("return a is not None", "return a is None"),
    "and_or": ("return a and b", "return a or b"),
    "negated": ("if a: return b", "if not (a): return b"),
    "arithmetic": ("return a - b", "return a + b"),
    "off_by_one": ("return a[1:]", "return a[2:]"),
    "removed_guard": ("if a:\n        return b\n    return a", "return a"),
    "swapped_arguments": ("return max(a, b)", "return max(b, a)"),
    "removed_update": ("a.sort()\n    return a", "return a"),
    "repeated_assignment": ("a = a + 1\n    return a", "return a"),
    "dropped_else": (
        "if a:\n        b = 1\n    else:\n        b = 2\n    return b",
        "if a:\n        b = 1\n    return b",
    ),
    "dropped_raise": ("raise ValueError(a)", "pass"),
    "narrowed_handler": (
        "try:\n        a()\n    except (KeyError, OSError):\n        pass",
        "try:\n        a()\n    except KeyError:\n        pass",
    ),
    "wrong_variable": ("return a", "return b"),
    "break_continue": ("for x in a:\n        break", "for x in a:\n        continue"),
    "flipped_truth": ("return True", "return False"),
    "confused_name": ("return min(a)", "return max(a)"),
    "dropped_conversion": ("return a.strip()", "return a"),
}


def function(body: str, parameters: str = "a, b") -> bytes:
    return f"x = 1  # é\n\ndef f({parameters}):\n    {body}\n\n\ny = 2\n".encode()


def sites(data: bytes, operator: str) -> list[bytes]:
    source = Source(data)
    found = mutate.sites(source, source.function("f"), operator)
    return [source.edited(edits) for edits in found]


@pytest.mark.parametrize("operator", sorted(SAMPLES))
def test_an_operator_makes_the_fault_that_it_is_named_for(operator: str) -> None:
    before, after = SAMPLES[operator]

    assert sites(function(before), operator)[0] == function(after)


def test_a_default_of_a_parameter_can_be_wrong() -> None:
    changed = sites(function("return a", "a, b=True"), "wrong_default")

    assert changed == [function("return a", "a, b=False")]


def test_every_operator_has_a_sample() -> None:
    assert {*SAMPLES, "wrong_default"} == set(OPERATORS)


def test_a_removed_body_keeps_signature_and_docstring() -> None:
    data = function('"""Says what it does."""\n    c = a\n    return c')

    assert sites(data, "removed_body") == [
        function('"""Says what it does."""\n    raise NotImplementedError')
    ]


def test_a_statement_that_fills_its_block_leaves_a_pass() -> None:
    data = function("if a:\n        b.sort()\n    return b")

    assert sites(data, "removed_update") == [function("if a:\n        pass\n    return b")]


def test_text_that_only_looks_like_an_operator_is_left_alone() -> None:
    assert sites(function('return a == "< and <="'), "boundary") == []
    assert sites(function("return (a  # <\n        < b)"), "boundary") == []


def test_columns_are_counted_in_bytes_behind_letters_that_are_no_ascii() -> None:
    data = function('return "ééé" < a')

    assert sites(data, "boundary") == [function('return "ééé" <= a')]


def test_what_every_operator_writes_can_be_parsed() -> None:
    data = function("\n    ".join(before for before, _ in SAMPLES.values() if "return" in before))

    for operator in OPERATORS:
        for changed in sites(data, operator):
            ast.parse(changed)


def test_two_bugs_in_one_file_are_both_put_in_at_places_of_the_pinned_file() -> None:
    data = function("if a < b:\n        a = a - 1\n    return a")
    bugs = [
        mutate.Bug(file="m.py", function="f", operator=operator)
        for operator in ("arithmetic", "boundary")
    ]

    changed = mutate.mutate({"m.py": data}, bugs)

    assert changed == {"m.py": function("if a <= b:\n        a = a + 1\n    return a")}


def test_a_bug_does_not_fit_a_file_that_is_not_the_pinned_one() -> None:
    bug = mutate.Bug(file="m.py", function="f", operator="boundary", digest="0" * 64)

    with pytest.raises(DefinitionError, match=r"m\.py is not the pinned file: its SHA-256 is"):
        mutate.mutate({"m.py": function("return a < b")}, [bug])


def test_a_site_that_is_not_there_is_said_with_how_many_there_are() -> None:
    bug = mutate.Bug(file="m.py", function="f", operator="boundary", site=1)

    with pytest.raises(DefinitionError, match="boundary has 1 sites in f, there is no site 1"):
        mutate.mutate({"m.py": function("return a < b")}, [bug])


def test_an_unknown_operator_is_said_with_those_there_are() -> None:
    bug = mutate.Bug(file="m.py", function="f", operator="typo")

    with pytest.raises(DefinitionError, match="no operator 'typo'; there are: boundary, "):
        mutate.mutate({"m.py": function("return a")}, [bug])


def test_inverse_edits_lead_back_through_texts_that_are_unique_at_their_turn() -> None:
    fixed = b"a = 1\nb = 2\na = 1\nb = 3\na = 1\nb = 2\n" * 2 + b"end = 0\n"
    broken = fixed.replace(b"b = 3\n", b"b = 4\n")
    text = broken.decode()

    for old, new in inverse.inverse_edits(broken, fixed):
        assert text.count(old) == 1
        text = text.replace(old, new)

    assert text.encode() == fixed


def test_inverse_edits_put_removed_lines_back() -> None:
    fixed, broken = b"one\ntwo\nthree\n", b"one\nthree\n"

    ((old, new),) = inverse.inverse_edits(broken, fixed)

    assert broken.decode().replace(old, new).encode() == fixed


TESTS = b"""\
import pytest


@pytest.mark.parametrize("x", [1, 2])
def test_one(x):
    assert x


class TestMany:
    def test_two(self):
        assert 2

    def helper(self):
        return 3


class TestMore(TestMany):
    def test_three(self):
        assert 3
"""


def test_a_cut_test_leaves_with_its_decorators_and_nothing_else_does() -> None:
    assert cutting.cut(TESTS, ["test_one"]) == TESTS.replace(
        b'@pytest.mark.parametrize("x", [1, 2])\ndef test_one(x):\n    assert x\n', b""
    )


def test_a_class_of_which_all_is_cut_keeps_a_body() -> None:
    assert b"class TestMore(TestMany):\n    pass\n" in cutting.cut(TESTS, ["TestMore::test_three"])


def test_an_inherited_test_is_cut_where_it_is_written() -> None:
    cut = cutting.cut(TESTS, ["TestMore::test_two"])

    assert b"test_two" not in cut
    assert b"def helper" in cut


def test_a_file_of_which_no_test_is_left_is_not_there() -> None:
    every = ["test_one", "TestMany::test_two", "TestMore::test_three"]

    assert cutting.cut(TESTS, every) is None


def test_a_test_that_is_written_elsewhere_cannot_be_cut() -> None:
    with pytest.raises(DefinitionError, match="no test 'TestMany::test_made' is written"):
        cutting.cut(TESTS, ["TestMany::test_made"])
