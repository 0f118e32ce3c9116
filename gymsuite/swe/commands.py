"""The test commands of rows that bring none: SWE-bench's classic twelve columns, and SWE-Gym's.

What v5 rows carry in `eval_script` and `log_parser`, older rows leave to the harness. These are the
runners of the repositories that those data sets are made of; any other one is run by pytest.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

_PYTEST = "pytest -rA"
_FILE = re.compile(r"^diff --git a/.* b/(?P<path>.*)$", re.MULTILINE)


class Runner(NamedTuple):
    """A command to which the test files are added, and the parser of what it prints."""

    command: str
    log_parser: str


_RUNNERS: Mapping[str, Runner] = {
    "astropy/astropy": Runner(f"{_PYTEST} -vv", "parse_log_astropy"),
    "django/django": Runner(
        "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1", "parse_log_django"
    ),
    "matplotlib/matplotlib": Runner(_PYTEST, "parse_log_matplotlib"),
    "mwaskom/seaborn": Runner(_PYTEST, "parse_log_seaborn"),
    "pallets/flask": Runner(_PYTEST, "parse_log_flask"),
    "psf/requests": Runner(_PYTEST, "parse_log_requests"),
    "pydata/xarray": Runner(_PYTEST, "parse_log_xarray"),
    "pylint-dev/pylint": Runner(_PYTEST, "parse_log_pylint"),
    "pylint-dev/astroid": Runner(_PYTEST, "parse_log_astroid"),
    "pytest-dev/pytest": Runner(_PYTEST, "parse_log_pytest"),
    "pydicom/pydicom": Runner(_PYTEST, "parse_log_pydicom"),
    "scikit-learn/scikit-learn": Runner(_PYTEST, "parse_log_scikit"),
    "sphinx-doc/sphinx": Runner("tox --current-env -epy39 -v --", "parse_log_sphinx"),
    "sympy/sympy": Runner("bin/test -C --verbose", "parse_log_sympy"),
}
_DEFAULT = Runner(_PYTEST, "parse_log_pytest")


def runner_of(repo: str) -> Runner:
    """The runner of a repository, `owner/name`."""
    return _RUNNERS.get(repo, _DEFAULT)


def files_of(test_patch: str) -> tuple[str, ...]:
    """The files of tests that a patch touches: Python, unless it touches none."""
    paths = dict.fromkeys(match["path"] for match in _FILE.finditer(test_patch))
    return tuple(path for path in paths if path.endswith(".py")) or tuple(paths)


def command_for(repo: str, files: Sequence[str]) -> str:
    """The command that runs these files."""
    names = [_label(path) for path in files] if repo == "django/django" else list(files)
    return f"{runner_of(repo).command} {shlex.join(names)}".rstrip()


def _label(path: str) -> str:
    """A file below tests/ as the module that Django's runner knows it by."""
    relative = path.removeprefix("tests/")
    return str(PurePosixPath(relative).with_suffix("")).replace("/", ".")
