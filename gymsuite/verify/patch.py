"""Makes git patches on this machine from contents: the only door to GitPython.

git sees nothing but a temporary bare repository that holds the two states. The caller's
configuration, hooks and attributes are shut out, and no repository of an agent's is ever opened.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import git

from gymsuite.errors import InfrastructureError
from gymsuite.sandbox.protocol import FileState

Files = Mapping[str, FileState]
"""A state of a directory: file modes and contents by relative path."""

_DIFF = (
    # Beyond its limit of pairs, a search for renames takes longer than anyone would wait.
    *("-c", "core.quotePath=true", "-c", "diff.renameLimit=400", "diff", "--unified=3"),
    *("--binary", "--full-index", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--diff-algorithm=myers", "--no-indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/"),
)
# Read once and thrown away: nothing to make small, or to keep from a power failure.
_IMPORT = (
    *("-c", "core.compression=0", "-c", "core.fsync=none"),
    *("fast-import", "--quiet", "--depth=0"),
)
_BEFORE, _AFTER = "refs/states/before", "refs/states/after"
_WHO = b"gymsuite <> 0 +0000"
_QUOTED = re.compile(rb'[\\"\x00-\x1f]')


async def make_patch(before: Files, after: Files) -> bytes:
    """Return the git patch from one state to the other; b"" if they are the same.

    Names are bytes in UTF-8 with surrogate escapes. Raises `InfrastructureError` if git fails.
    """
    if before == after:
        return b""
    return await asyncio.to_thread(_diff, before, after)


def _diff(before: Files, after: Files) -> bytes:
    with tempfile.TemporaryDirectory(prefix="gymsuite-patch-") as folder:
        repository, stream = Path(folder) / "repository", Path(folder) / "stream"
        repository.mkdir()
        stream.write_bytes(b"".join(_stream(before, after)))
        runner = git.Git(repository)
        runner.update_environment(**_environment(Path(folder)))
        try:
            _run(runner, "init", "--quiet", "--bare", "--template=")
            with stream.open("rb") as source:
                _run(runner, *_IMPORT, source=source)
            return _run(runner, *_DIFF, _BEFORE, _AFTER, "--")
        except git.GitCommandError as error:
            raise InfrastructureError(f"git cannot make a patch: {error}") from error


def _run(runner: git.Git, *command: str, source: BinaryIO | None = None) -> bytes:
    # GitPython can add to the caller's environment, but not take away from it.
    foreign = [part for name in os.environ if name.startswith("GIT_") for part in ("-u", name)]
    ours = [f"{name}={value}" for name, value in runner.environment().items()]
    output: bytes = runner.execute(
        ["env", *foreign, *ours, "git", *command],
        istream=source,
        stdout_as_string=False,
        strip_newline_in_stdout=False,
    )
    return output


def _environment(folder: Path) -> dict[str, str]:
    """Shut out all that could steer git from this machine."""
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }


def _stream(before: Files, after: Files) -> Iterator[bytes]:
    """Both states in the format of git fast-import."""
    for ref, files in ((_BEFORE, before), (_AFTER, after)):
        yield b"commit %s\ncommitter %s\ndata 0\n" % (ref.encode(), _WHO)
        for path, state in sorted(files.items()):
            name = path.encode("utf-8", "surrogateescape")
            yield b"M %o inline %s\n" % (state.mode, _quoted(name))
            yield b"data %d\n%s\n" % (len(state.data), state.data)
        yield b"\n"


def _quoted(name: bytes) -> bytes:
    return b'"' + _QUOTED.sub(lambda match: b"\\%03o" % match[0][0], name) + b'"'
