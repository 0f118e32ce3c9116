"""A library's checkout in a sandbox: its files as pinned, and as a task wants them."""

import posixpath
from collections.abc import Iterable, Mapping

from gymsuite.errors import DefinitionError, SandboxError
from gymsuite.sandbox.protocol import Sandbox

from .row import Row

_SECONDS = 60.0
# The date is part of the commit's name, and the same task has the same commit everywhere.
_COMMIT = """
set -e
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 TZ=UTC
export GIT_AUTHOR_NAME=pybugs GIT_AUTHOR_EMAIL=pybugs@localhost GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=pybugs GIT_COMMITTER_EMAIL=pybugs@localhost
export GIT_COMMITTER_DATE='1700000000 +0000'
git init --quiet --template= --initial-branch=main
git -c core.autocrlf=false add --all --force
git -c gc.auto=0 -c commit.gpgSign=false commit --quiet --no-verify --message 'The library'
"""


async def read_all(sandbox: Sandbox, workdir: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Read files; raises `DefinitionError` for one that is not there."""
    files = {}
    for path in paths:
        data = await sandbox.read(posixpath.join(workdir, path))
        if data is None:
            raise DefinitionError(f"the image has no file {workdir}/{path}")
        files[path] = data
    return files


async def write_all(sandbox: Sandbox, workdir: str, files: Mapping[str, bytes | None]) -> None:
    """Write files; None removes one."""
    for path, data in files.items():
        if data is not None:
            await sandbox.write(posixpath.join(workdir, path), data)
    gone = [path for path, data in files.items() if data is None]
    if gone:
        await _run(sandbox, workdir, ["rm", "-f", "--", *gone])


async def break_library(sandbox: Sandbox, row: Row) -> None:
    """Put the bug in and take the tests that show it away."""
    pristine = await read_all(sandbox, row.workdir, row.paths)
    await write_all(sandbox, row.workdir, row.prepared(pristine))


async def commit(sandbox: Sandbox, workdir: str) -> None:
    """Make the checkout a git repository with one commit, which holds all of it."""
    await _run(sandbox, workdir, ["sh", "-c", _COMMIT])


async def _run(sandbox: Sandbox, workdir: str, command: list[str]) -> None:
    result = await sandbox.exec(command, cwd=workdir, timeout=_SECONDS)
    if result.exit_code != 0:
        raise SandboxError(f"{command[0]} failed in {workdir}: {result.output[-500:]!r}")
