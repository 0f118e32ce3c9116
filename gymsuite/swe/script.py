"""A row's evaluation as one script, and what of it depends on the patch."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from gymsuite.errors import VerifierError
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.swe.markers import END, EXIT_CODE
from gymsuite.swe.rows import Row

INSTALL = (
    "setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "meson.build", "CMakeLists.txt",
    "*.pyx", "*.pxd", "*.pxi", "*.c", "*.cc", "*.cpp", "*.cxx", "*.h", "*.hpp", "*.f", "*.f90",
    "*.rs", "Cargo.toml",
)  # fmt: skip
"""Files that an installation in editable mode reads: a change of one needs a new one."""

_PATHS = re.compile(
    r"^(?:---|\+\+\+|rename from|rename to) \"?(?:[ab]/)?(?P<path>[^\t\r\n]+)", re.MULTILINE
)
# All that names a file that is empty, binary or has another mode.
_SAME = re.compile(r"^diff --git \"?a/(?P<path>[^\r\n]{1,4096}) \"?b/(?P=path)\r?$", re.MULTILINE)
_ACTIVATE = "/opt/miniconda3/bin/activate"
_BEGIN = (
    "#!/bin/bash",
    f"[ ! -f {_ACTIVATE} ] || {{ source {_ACTIVATE}; conda activate testbed; }}",
)
_INSTALL = "python -m pip install --no-index --no-deps --no-build-isolation -e ."


def of(row: Row, *, strict: bool) -> str:
    """The script to run: the row's own as it is, or its commands one after another.

    Upstream adds two lines that say how the tests exited; with `strict` so do we.
    """
    if not row.eval_script:
        commands = (*row.rebuild_commands, *row.test_commands)
        return "\n".join([*_BEGIN, f"cd {shlex.quote(row.workdir)}", *commands, ""])
    return _with_exit_code(row.eval_script) if strict else row.eval_script


def _with_exit_code(text: str) -> str:
    end = f": '{END}'"
    before, found, after = text.partition(end)
    if not found:
        return text
    code = "SWEBENCH_TEST_EXIT_CODE"
    return f'{before}{code}=$?\n{end}\necho "{EXIT_CODE}: ${code}"{after}'


def paths_of(patch: str) -> tuple[str, ...]:
    """The paths that a patch names, `/dev/null` left out."""
    matches = (*_PATHS.finditer(patch), *_SAME.finditer(patch))
    found = (match["path"].strip().strip('"') for match in matches)
    return tuple(dict.fromkeys(path for path in found if path != "/dev/null"))


def is_of_install(path: str) -> bool:
    """Whether an installed checkout has to be installed again when this file changes."""
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in INSTALL)


async def rebuild(sandbox: Sandbox, row: Row, seconds: float) -> None:
    """Install the checkout again, from what is there."""
    command = f"source {_ACTIVATE}; conda activate testbed; {_INSTALL}"
    done = await sandbox.exec(["/bin/bash", "-c", command], cwd=row.workdir, timeout=seconds)
    if done.timed_out:
        raise VerifierError(f"{row.instance_id}: installing it again took over {seconds:g} seconds")
