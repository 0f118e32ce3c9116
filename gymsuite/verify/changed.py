"""What differs between a sandbox's workdir and its image, by paths below the workdir."""

import posixpath

from gymsuite.sandbox.protocol import DEFAULT_FILE_BYTES, Changes, Sandbox


async def changed_below(
    sandbox: Sandbox, workdir: str, *, max_bytes: int = DEFAULT_FILE_BYTES
) -> Changes:
    """Read the changes from outside, which ends every process in the sandbox."""
    changes = await sandbox.changes(workdir, max_bytes=max_bytes)
    return Changes(
        tuple(c._replace(path=posixpath.relpath(c.path, workdir)) for c in changes.changed),
        tuple(posixpath.relpath(path, workdir) for path in changes.omitted),
    )
