"""Which paths of a submission count."""

import pytest

from gymsuite.verify.policy import is_cache, is_protected


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py", "tests", "lib/tests/data/x.json", "test_a.py", "lib/a_test.py",
        "conftest.py", "lib/conftest.py", "CONFTEST.PY", "pytest.ini", "tox.ini", "setup.cfg",
        "pyproject.toml", "sitecustomize.py", "src/usercustomize.py", "src/x.pth",
        "sitecustomize/__init__.py", "src/usercustomize.abi3.so", "pluggy.so",
        ".gitattributes", "pytest.py", "src/_pytest/__init__.py", "pluggy/__init__.py",
    ],
)  # fmt: skip
def test_tests_and_what_steers_their_runner_are_protected(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    ["lib/core.py", "src/lib/testing.py", "README.md", "lib/contest.py", "src/lib/latest.py"],
)
def test_a_library_is_not(path: str) -> None:
    assert not is_protected(path)


def test_a_task_can_give_a_path_free() -> None:
    assert not is_protected("pyproject.toml", ("pyproject.toml",))
    assert is_protected("setup.cfg", ("pyproject.toml",))


@pytest.mark.parametrize(
    "path", ["lib/__pycache__/a.cpython-311.pyc", "a.pyc", ".pytest_cache/v", ".git/config"]
)
def test_what_tools_leave_behind_is_no_part_of_a_change(path: str) -> None:
    assert is_cache(path)
    assert not is_cache("lib/cache.py")
