"""Applies a submitted patch in a sandbox, and undoes what a submission may not touch."""

import posixpath
from collections.abc import Callable, Collection
from pathlib import PurePosixPath

from gymsuite.errors import PathRefused, VerifierError
from gymsuite.sandbox.protocol import Change, Changes, Sandbox
from gymsuite.verify.changed import changed_below
from gymsuite.verify.policy import is_cache, is_protected

_SECONDS = 60.0
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CEILING_DIRECTORIES": "/",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
}


async def apply_patch(sandbox: Sandbox, patch: bytes, workdir: str) -> str:
    """Apply a git patch below `workdir`, all or nothing. Returns why it does not apply, or "".

    No repository is needed there, and none is looked for.
    """
    result = await sandbox.exec(
        # Attributes that lie in the tree could make git convert what it reads or writes.
        ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"],
        stdin=patch,
        cwd=workdir,
        timeout=_SECONDS,
        env=_ENVIRONMENT,
    )
    if result.exit_code == 0:
        return ""
    if result.timed_out:
        return f"git apply took longer than {_SECONDS:.0f} seconds"
    if result.exit_code not in (1, 128):
        raise VerifierError(f"git apply ended with {result.exit_code}: {result.output[:500]!r}")
    return result.output.strip()[:1000] or f"git apply ended with {result.exit_code}"


async def restore_protected(
    sandbox: Sandbox, workdir: str, *, allowed: Collection[str] = ()
) -> tuple[str, ...]:
    """Put every protected path back as it is in the image, and remove caches.

    Returns the paths that had been changed. They are found from outside: nothing that runs in
    the sandbox is asked. Raises `PathRefused` where there are too many changes to look at.
    """
    changes = await changed_below(sandbox, workdir)
    return await undo(sandbox, workdir, changes, lambda path: is_protected(path, allowed))


async def undo(
    sandbox: Sandbox, workdir: str, changes: Changes, protected: Callable[[str], bool]
) -> tuple[str, ...]:
    """Put those of the changes back that are protected, or caches; returns their paths."""
    if "." in changes.omitted:
        raise PathRefused(f"more changes below {workdir} than can be looked at", retryable=False)
    undone = [c for c in changes.changed if is_cache(c.path) or protected(c.path)]
    omitted = [p for p in changes.omitted if is_cache(p) or protected(p)]
    new = [c.path for c in undone if c.before is None]
    # A file or a link in place of a folder would keep what belongs there out.
    folders = {str(folder) for change in undone for folder in PurePosixPath(change.path).parents}
    in_the_way = [c.path for c in changes.changed if c.after is not None and c.path in folders]
    await _remove(sandbox, workdir, in_the_way)
    await _remove(sandbox, workdir, [*new, *omitted])
    for change in undone:
        if change.before is not None:
            await _write(sandbox, workdir, change)
    return tuple(sorted([*omitted, *(change.path for change in undone)]))


async def _write(sandbox: Sandbox, workdir: str, change: Change) -> None:
    if change.before is None or not change.before.mode & 0o100000:
        return
    # A link in its place would lead the write elsewhere.
    await _remove(sandbox, workdir, [change.path])
    mode = change.before.mode & 0o777
    await sandbox.write(posixpath.join(workdir, change.path), change.before.data, mode=mode)


async def _remove(sandbox: Sandbox, workdir: str, paths: Collection[str]) -> None:
    if not paths:
        return
    result = await sandbox.exec(
        ["xargs", "-0", "rm", "-rf", "--"],
        stdin=b"\0".join(path.encode("utf-8", "surrogateescape") for path in paths),
        cwd=workdir,
        timeout=_SECONDS,
    )
    if result.exit_code != 0:
        raise VerifierError(f"cannot remove protected paths: {result.output[:500]!r}")
