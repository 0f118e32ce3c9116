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

CACHES = ("__pycache__", "*.pyc", "*.pyo", ".pytest_cache", ".hypothesis", ".mypy_cache", ".git")
"""What tools leave behind; it is no part of a change, and stale bytecode hides its source."""


def is_protected(path: str, allowed: Collection[str] = ()) -> bool:
    """Whether a submission may not touch this path, which is relative to the workdir.

    `allowed` are patterns of whole paths that a task gives free.
    """
    if any(fnmatchcase(path, pattern) for pattern in allowed):
        return False
    return _matches(path, PROTECTED)


def is_cache(path: str) -> bool:
    """Whether this path is a by-product of running something."""
    return _matches(path, CACHES)


def _matches(path: str, patterns: Collection[str]) -> bool:
    # Case counts for nothing: a file system that ignores it would load conftest.PY, too.
    parts = PurePosixPath(path.lower()).parts
    return any(fnmatchcase(part, pattern) for part in parts for pattern in patterns)
