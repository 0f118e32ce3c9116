"""Proves that an image holds nothing from after a row's base commit, or refuses it.

Looked for are commits, refs, reflogs, remotes and loose or packed objects that are no part of the
base commit's history, further repositories, and copies of what the solution writes, in archives and
caches, too. Whatever keeps the scan from its end is a refusal.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.swe.rows import Row

_PROGRAM = Path(__file__).with_name("scan_in_image.py")
_SECONDS = 300.0
_SHOWN = 5
# Fewer characters than these are a coincidence: `return None` is in many files.
_SHORTEST = 24
_PYTHONS = (
    "/opt/miniconda3/envs/testbed/bin/python",
    "/usr/bin/python3",
    "python3",
    "python",
)


class Scans:
    """Which images were found clean, for which rows: in memory, and below a folder on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clean: set[str] = set()

    async def check(self, row: Row, sandbox: Sandbox) -> None:
        """Raise `DefinitionError` that names the leaks of the image that a sandbox is fresh from.

        An image is looked through once for each row. One without a digest is never trusted.
        """
        digest = str(sandbox.description.get("digest", ""))
        key = hashlib.sha256(f"{digest}|{row.model_dump_json()}".encode()).hexdigest()
        path = self._folder / key
        if digest and (key in self._clean or path.exists()):
            self._clean.add(key)
            return
        if problems := await scan(row, sandbox):
            shown = "; ".join(problems[:_SHOWN])
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise DefinitionError(
                f"{row.instance_id}: its image shows what an agent must not see: {shown}{more}"
            )
        self._clean.add(key)
        self._folder.mkdir(parents=True, exist_ok=True)
        path.touch()


async def scan(row: Row, sandbox: Sandbox) -> list[str]:
    """Look through a sandbox that is fresh from its image; returns what it should not hold.

    Raises `DefinitionError` where it cannot be told.
    """
    asked = {"workdir": row.workdir, "base": row.base_commit, "wanted": signs(row.patch)}
    program = _PROGRAM.read_text(encoding="utf-8")
    for python in _PYTHONS:
        done = await sandbox.exec(
            [python, "-c", program],
            stdin=json.dumps(asked).encode(),
            cwd="/",
            timeout=_SECONDS,
            env={"GIT_CONFIG_GLOBAL": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        if done.exit_code != _NOT_FOUND:
            break
    try:
        problems = json.loads(done.stdout)["problems"]
    except (ValueError, KeyError, TypeError) as error:
        said = "it took too long" if done.timed_out else done.output[-500:]
        raise DefinitionError(
            f"{row.instance_id}: its image cannot be looked through for leaks: {said}"
        ) from error
    return [str(problem) for problem in problems]


def signs(patch: str) -> Mapping[str, list[str]]:
    """By file name, what a patch makes of each of its places: a file with all of them is fixed.

    A place is the lines that are there afterwards, those around the change included; white space
    is squeezed. Files in which too little is said to tell are left out.
    """
    found: dict[str, list[str]] = {}
    for file in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        target = re.search(r"^\+\+\+ b/(.+?)\t?$", file, re.MULTILINE)
        if target is None:
            continue
        hunks = re.split(r"^@@ .*$", file, flags=re.MULTILINE)[1:]
        blocks = [block for block in map(_after, hunks) if len(block) >= _SHORTEST]
        if blocks:
            found[PurePosixPath(target[1]).name] = blocks
    return found


def _after(hunk: str) -> str:
    lines = (line for line in hunk.split("\n") if not line.startswith(("-", "\\")))
    # The same characters are taken off in the sandbox, where a line may be one of a patch.
    squeezed = (" ".join(line.lstrip("+- ").split()) for line in lines)
    return "\n".join(line for line in squeezed if line)


_NOT_FOUND = 127
