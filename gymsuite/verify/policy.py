"""Which paths of a submission count: those that neither make the tests nor steer their runner."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

PROTECTED = (
    "test", "tests", "test_*.py", "*_test.py", "conftest.py",
    "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
    "pyproject.toml", "*.pth", "*.egg-link", ".gitattributes",
    "sitecustomize", "sitecustomize.*", "usercustomize", "usercustomize.*", "pytest", "pytest.*",
    "_pytest", "_pytest.*", "pluggy", "pluggy.*", "iniconfig", "iniconfig.*", "packaging",
    "packaging.*",
)  # fmt: skip
"""Names of files and folders; one of them anywhere in a path protects all that is below it."""

_NEVER_LIFTED = ("conftest.py", "*.pth", "*.egg-link", ".gitattributes", "sitecustomize",
    "sitecustomize.*", "usercustomize", "usercustomize.*")  # fmt: skip

CACHES = ("__pycache__", "*.pyc", "*.pyo", ".pytest_cache", ".hypothesis", ".mypy_cache", ".git")
"""What tools leave behind; it is no part of a change, and stale bytecode hides its source."""


def is_protected(path: str, allowed: Collection[str] = ()) -> bool:
    """Whether a submission may not touch this path, which is relative to the workdir.

    `allowed` are patterns of whole paths that a task gives free.
    """
    if any(fnmatchcase(path, pattern) for pattern in allowed):
        return False
    return _matches(path, PROTECTED)


def lifted_for(paths: Collection[str]) -> frozenset[str]:
    """The patterns that a solution itself offends against: for its task they protect nothing.

    What steers the runner from within the tree stays protected whatever a solution does.
    """
    parts = {part for path in paths for part in PurePosixPath(path.lower()).parts}
    return frozenset(
        pattern
        for pattern in PROTECTED
        if pattern not in _NEVER_LIFTED and any(fnmatchcase(part, pattern) for part in parts)
    )


def is_protected_but(path: str, lifted: Collection[str]) -> bool:
    """Whether a submission may not touch this path of a task for which patterns are lifted."""
    return _matches(path, [pattern for pattern in PROTECTED if pattern not in lifted])


def is_cache(path: str) -> bool:
    """Whether this path is a by-product of running something."""
    return _matches(path, CACHES)


def _matches(path: str, patterns: Collection[str]) -> bool:
    # Case counts for nothing: a file system that ignores it would load conftest.PY, too.
    parts = PurePosixPath(path.lower()).parts
    return any(fnmatchcase(part, pattern) for part in parts for pattern in patterns)
