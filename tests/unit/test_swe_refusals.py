"""Tests that must fail because nothing is raised, beside those by `pytest.raises`."""

import ast
import textwrap

import pytest

from gymsuite.swe.refusals import candidates, plant

TESTS = textwrap.dedent(
    '''
    import pytest
    from lib import Wrong, make


    def test_refuses():
        with pytest.raises(ValueError, match="no"):
            make("")


    def test_makes():
        """It makes."""
        text = """
    to the left
    """
        assert make(
    text
        ) == 1


    class TestMake:
        def test_again(self, tmp_path):
            assert make(tmp_path) == 2

        @pytest.mark.skip
        def test_later(self): ...

    def test_one_line(): make("x")
    '''
).encode()


def test_only_tests_that_can_be_put_below_other_words_are_candidates() -> None:
    assert candidates(TESTS) == ("test_makes", "TestMake::test_again")


@pytest.mark.parametrize("words", ["pytest.warns(X)", "pytest.raises(kind)", "open('x')"])
def test_a_file_without_words_that_hold_anywhere_has_no_candidate(words: str) -> None:
    data = f"def test_a():\n    with {words}:\n        f()\n\ndef test_b():\n    g()\n".encode()
    assert candidates(data) == ()
    assert plant(data, ["test_b"], 9).data == data


@pytest.mark.parametrize("words", ["pytest.raises(KeyError)", "raises((E, F), match='x')"])
def test_pytests_words_are_known_under_either_name(words: str) -> None:
    data = f"def test_a():\n    with {words}:\n        f()\n\ndef test_b():\n    g()\n".encode()
    assert plant(data, ["test_b"], 9).data.count(words.encode()) == 2


def test_a_twin_is_the_same_body_below_the_same_words_under_a_new_name() -> None:
    twins = plant(TESTS, candidates(TESTS), 9)
    tree = ast.parse(twins.data)
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(twins.names.values()) == set(candidates(TESTS))
    for twin, original in twins.names.items():
        kind, _, name = twin.rpartition("::")
        node, old = functions[name], functions[original.rpartition("::")[2]]
        below = node.body[0]
        assert name != old.name
        assert not kind or node in classes[kind].body
        assert ast.dump(node.args) == ast.dump(old.args)
        assert isinstance(below, ast.With)
        assert ast.unparse(below.items[0].context_expr) == "pytest.raises(ValueError, match='no')"
        assert [type(each) for each in below.body] == [type(each) for each in old.body]


def test_names_and_choice_are_new_each_time() -> None:
    names = {tuple(plant(TESTS, candidates(TESTS), 1).names.items()) for _ in range(60)}
    assert len(names) > 2
    assert {original for ((_, original),) in names} == set(candidates(TESTS))
