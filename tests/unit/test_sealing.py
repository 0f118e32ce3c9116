"""Sealed tests: the expected values leave, and the tests say what they saw."""

from typing import Any

import pytest

from gymsuite.verify.in_sandbox import OPAQUE, Observer, canonical
from gymsuite.verify.sealing import COMPARE, OBSERVE, probed, sealed, sites
from gymsuite.verify.source import Source


def seal(text: str, *leave: int) -> str:
    return sealed(Source(text.encode()), leave).decode()


def run(code: bytes, name: str, *arguments: object) -> list[str]:
    """Run one function of a test file, and return what it observed."""
    observer = Observer()
    space: dict[str, Any] = {OBSERVE: observer.observed, COMPARE: observer.compared_with}
    exec(compile(code, "test_file.py", "exec"), space)  # noqa: S102 - a file of this test's own
    space[name](*arguments)
    return observer.values


def test_an_expected_value_leaves_the_file() -> None:
    text = "def test_it():\n    assert double(21) == 42\n"

    assert "42" not in seal(text)
    assert run(b"double = lambda n: 2 * n\n" + seal(text).encode(), "test_it") == ["0=42"]


@pytest.mark.parametrize(
    "statement",
    [
        "assert double(21) == 42",
        "assert 42 == double(21)",
        "assert double(21) == 42, 'a message'",
        "self.assertEqual(double(21), 42)",
        "self.assertEqual(42, double(21))",
        "assert_equal(42, double(21))",
        "assert double(21) == (\n        40\n        + 2\n    )",
        "expected = 42\n    assert double(21) == expected",
        "for n, wanted in [(21, 42)]:\n        assert double(n) == wanted",
    ],
)
def test_a_value_is_sealed_however_it_is_compared(statement: str) -> None:
    text = seal(f"def test_it(self=None):\n    {statement}\n")

    assert "42" not in text
    assert run(b"double = lambda n: 2 * n\n" + text.encode(), "test_it") == ["0=42"]


def test_a_column_of_a_parametrisation_leaves_the_file() -> None:
    text = (
        '@pytest.mark.parametrize("n, wanted", [(1, "one"), (2, "two")])\n'
        "def test_it(n, wanted):\n    assert word(n) == wanted\n"
    )

    assert seal(text) == (
        '@pytest.mark.parametrize("n, wanted", [(1, None), (2, None)])\n'
        f"def test_it(n, wanted):\n    {OBSERVE}(0, (word(n)), False)\n"
    )


def test_a_value_that_is_read_elsewhere_too_stays_and_so_does_its_assertion() -> None:
    text = "def test_it():\n    expected = 42\n    assert f(expected) == expected\n"

    assert seal(text) == text


def test_what_is_compared_with_something_computed_stays() -> None:
    text = "def test_it():\n    assert f(1) == g(1)\n    assert f(1)\n    assert 1 == 1\n"

    assert seal(text) == text


def test_a_site_that_is_to_be_left_stays_and_the_others_keep_their_numbers() -> None:
    text = "def test_it():\n    assert f(1) == 1\n    assert f(2) == 2\n"

    assert (
        seal(text, 0) == f"def test_it():\n    assert f(1) == 1\n    {OBSERVE}(1, (f(2)), False)\n"
    )


def test_identity_is_told_from_equality() -> None:
    text = seal("def test_it():\n    assert f() is True\n").encode()

    assert run(b"f = lambda: True\n" + text, "test_it") == ["0=True"]
    assert run(b"f = lambda: 1\n" + text, "test_it") == [f"0={OPAQUE}"]


def test_a_probed_test_fails_where_it_would_have_failed() -> None:
    code = probed(Source(b"def test_it():\n    assert f() == 1\n"))

    assert run(b"f = lambda: 1\n" + code, "test_it")
    with pytest.raises(AssertionError):
        run(b"f = lambda: 2\n" + code, "test_it")


def test_a_probed_file_keeps_its_line_numbers() -> None:
    text = (
        b"def test_it():\n    assert f(\n        1\n    ) == (\n        2\n    )\n    assert g()\n"
    )

    assert probed(Source(text)).split(b"\n").index(b"    assert g()") == 6


def test_a_probe_tells_what_cannot_be_sealed() -> None:
    code = "def test_it():\n    assert f(1) == [1]\n    assert f(2) == [1]\n"
    observer = Observer()
    space: dict[str, Any] = {COMPARE: observer.compared_with}
    text = "class Same(list):\n    def __eq__(self, other): return True\n"
    text += "def f(n): return [1] if n == 1 else Same([2])\n"
    exec(compile(text, "lib.py", "exec"), space)  # noqa: S102 - a file of this test's own
    exec(compile(probed(Source(code.encode())), "test_a.py", "exec"), space)  # noqa: S102
    space["test_it"]()

    assert observer.compared == {"test_a.py:0": True, "test_a.py:1": False}


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "42"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2}, frozenset({2, 1})),
        (b"x", bytearray(b"x")),
    ],
)
def test_what_compares_equal_has_one_text(one: object, other: object) -> None:
    assert canonical(one) == canonical(other) != OPAQUE


@pytest.mark.parametrize(
    ("one", "other"),
    [([1], (1,)), ("1", 1), (b"1", "1"), (None, 0), ([[], []], [[[]]]), (["a,b"], ["a", "b"])],
)
def test_what_differs_has_different_texts(one: object, other: object) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("value", [Anything(), object(), float("nan"), iter([1]), [Anything()]])
def test_a_value_of_another_kind_says_nothing(value: object) -> None:
    assert canonical(value) == OPAQUE


def test_a_value_without_an_end_says_nothing() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert canonical(endless) == OPAQUE


def test_sites_are_counted_through_the_file() -> None:
    source = Source(b"def test_b():\n    assert f() == 1\n\ndef test_a():\n    assert f() == 2\n")

    assert [(s.number, s.statement.lineno) for s in sites(source)] == [(0, 2), (1, 5)]
