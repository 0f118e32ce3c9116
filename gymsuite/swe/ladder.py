"""Applies a patch as SWE-bench does: one attempt after another, the tree reset between them."""

import re
from typing import NamedTuple

from gymsuite.errors import VerifierError
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.swe.rows import Ladder

_SECONDS = 120.0
_FILE = "/tmp/patch.diff"  # noqa: S108 - inside the sandbox, where upstream has it
_NO_RUNG = 99
_EACH_FILE = re.compile(rb"(?m)^(?=diff --git )")
_BINARY = re.compile(rb"(?m)^(?:Binary files .* differ|GIT binary patch)$")
_ALREADY = "already applied"

# GNU patch would write into .git, where hooks and filters are programs: it is away then, under a
# name that no patch knows.
_PATCH = """
aside=$(mktemp -d -p . .XXXXXXXXXXXXXXXX) && mv .git "$aside/git" || exit 98
patch --batch --forward --fuzz=5 -p1 -i {file}; status=$?
rm -rf .git && mv "$aside/git" .git && rmdir "$aside" || exit 98
(exit $status)
"""
_ONCE = (("git apply", "git apply --verbose {file}"),)
_RUNGS = {
    Ladder.OFFICIAL: (
        ("git apply", "git apply --verbose {file}"),
        ("git apply --3way", "git apply --verbose --3way {file}"),
        ("git apply --reject", "git apply --verbose --reject {file}"),
        ("patch --fuzz=5", _PATCH),
        (_ALREADY, "git apply --check --reverse {file}"),
    ),
    Ladder.ONCE: _ONCE,
    Ladder.ONCE_TEXT: _ONCE,
    Ladder.THREE_WAY: (
        ("git apply --3way", "git apply -v --3way --recount --ignore-space-change {file}"),
    ),
}
_SCRIPT = """
cd "$1" || exit 98
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
"""


_SETTLE = """
git add -A && { git diff --cached --quiet || git -c user.name=row -c user.email=row@localhost \
    -c commit.gpgsign=false commit -q --no-verify -m settled; }
"""


class Applied(NamedTuple):
    """By which attempt a patch was applied ("" for none), and what they all said."""

    how: str
    log: str


async def apply_by_ladder(
    sandbox: Sandbox, patch: bytes, workdir: str, ladder: Ladder = Ladder.OFFICIAL
) -> Applied:
    """Apply a patch to a clean or settled checkout; where nothing helps, the tree is as it was."""
    await sandbox.write(_FILE, without_binary_files(patch) if ladder is Ladder.ONCE_TEXT else patch)
    rungs = _RUNGS[ladder]
    done = await sandbox.exec(
        ["/bin/bash", "-c", _script(rungs), "bash", workdir],
        timeout=_SECONDS,
        cwd="/",
        max_output=1 << 20,
    )
    log = done.output
    if done.exit_code == _NO_RUNG or done.timed_out:
        return Applied("", log)
    if done.exit_code >= len(rungs):
        raise VerifierError(f"patches cannot be applied in {workdir}: {log[-500:]}")
    return Applied(rungs[done.exit_code][0], log)


async def settle(sandbox: Sandbox, workdir: str) -> None:
    """Make what is there what later attempts go back to, rather than the base commit."""
    done = await sandbox.exec(
        ["/bin/bash", "-c", f"{_SCRIPT}{_SETTLE}", "bash", workdir], timeout=_SECONDS, cwd="/"
    )
    if done.exit_code:
        raise VerifierError(f"{workdir} cannot be committed: {done.output[-500:]}")


def without_binary_files(patch: bytes) -> bytes:
    """A patch less its binary files."""
    return b"".join(part for part in _EACH_FILE.split(patch) if not _BINARY.search(part))


def _script(rungs: tuple[tuple[str, str], ...]) -> str:
    # A missing `patch` is exit code 127 of that attempt, and no end of the ladder.
    reset = "git checkout -q -- . ; git reset -q ; git checkout -q -- . ; git clean -fdq"
    attempts = [
        f"echo {name!r}\n( {command.format(file=_FILE)} ) 2>&1 && exit {number}\n"
        f"test $? = 98 && exit 98\n{reset}\n"
        for number, (name, command) in enumerate(rungs)
    ]
    return "\n".join([_SCRIPT, *attempts, f"exit {_NO_RUNG}"])
