"""Brings a patch into a fresh checkout, as its row wants it and as far as its paths may count."""

from typing import NamedTuple

from gymsuite.errors import DefinitionError, PathRefused
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.swe import script
from gymsuite.swe.ladder import Applied, apply_by_ladder, settle
from gymsuite.swe.parsers.text import text_of
from gymsuite.swe.rows import Row, TestPatch
from gymsuite.verify.applying import undo
from gymsuite.verify.changed import changed_below
from gymsuite.verify.policy import is_protected_but, lifted_for


class Patched(NamedTuple):
    """How it was applied ("" where it does not apply), what was undone, and what follows.

    `rebuild` says that the checkout has to be installed again.
    """

    how: str
    log: str = ""
    undone: tuple[str, ...] = ()
    rebuild: bool = False


async def bring_in(sandbox: Sandbox, row: Row, patch: bytes) -> Patched:
    """Apply a patch, undo what none may touch, and bring in the tests where the row does not."""
    await bring_in_problem(sandbox, row)
    applied = await apply_by_ladder(sandbox, patch, row.workdir, row.ladder) if patch else None
    patched = Patched("nothing to apply") if applied is None else await _kept(sandbox, row, applied)
    if patched.how and row.test_patch_when in {TestPatch.BEFORE, TestPatch.AFTER}:
        await settle(sandbox, row.workdir)
        await bring_in_own(sandbox, row, row.test_patch)
    return patched


async def bring_in_as_upstream(sandbox: Sandbox, row: Row, patch: bytes) -> Patched:
    """Apply a patch to whatever it touches, in the data set's own order."""
    await bring_in_problem(sandbox, row)
    if row.test_patch_when is TestPatch.BEFORE:
        await bring_in_own(sandbox, row, row.test_patch)
        await settle(sandbox, row.workdir)
    applied = await apply_by_ladder(sandbox, patch, row.workdir, row.ladder)
    if applied.how and row.test_patch_when is TestPatch.AFTER:
        await settle(sandbox, row.workdir)
        await bring_in_own(sandbox, row, row.test_patch)
    rebuild = any(map(script.is_of_install, script.paths_of(text_of(patch))))
    return Patched(applied.how, applied.log, rebuild=rebuild)


async def bring_in_problem(sandbox: Sandbox, row: Row) -> None:
    """Make the repository that an agent sees, where the row's commit alone is not it."""
    if row.setup_patch:
        await bring_in_own(sandbox, row, row.setup_patch)
        await settle(sandbox, row.workdir)


async def bring_in_own(sandbox: Sandbox, row: Row, patch: str) -> None:
    """Apply one of the row's own patches; raises `DefinitionError` for one that does not apply."""
    if not patch.strip():
        return
    applied = await apply_by_ladder(sandbox, patch.encode(), row.workdir)
    if not applied.how:
        raise DefinitionError(f"{row.instance_id}: its own patch does not apply: {applied.log}")


async def _kept(sandbox: Sandbox, row: Row, applied: Applied) -> Patched:
    if not applied.how:
        return Patched("", applied.log)
    lifted = lifted_for(script.paths_of(row.patch))
    changes = await changed_below(sandbox, row.workdir)
    try:
        undone = await undo(
            sandbox, row.workdir, changes, lambda path: is_protected_but(path, lifted)
        )
    except PathRefused as error:
        return Patched("", f"{applied.log}\n{error}")
    kept = [change.path for change in changes.changed if change.path not in undone]
    return Patched(applied.how, applied.log, undone, any(map(script.is_of_install, kept)))
