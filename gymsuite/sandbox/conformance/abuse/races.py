"""Attacks on whoever reads and writes from outside: files that change under the reader's hands."""

import tempfile
from contextlib import suppress
from pathlib import Path

from gymsuite.errors import PathRefused
from gymsuite.sandbox.conformance.abuse.attack import Attack, inside
from gymsuite.sandbox.conformance.case import PATIENCE, expect
from gymsuite.sandbox.protocol import Sandbox

KIND = "races"
_ROUNDS = 40


async def _begin(sandbox: Sandbox, loop: str) -> None:
    script = f"setsid sh -c 'while :; do {loop}; done' > /dev/null 2>&1 &"
    result = await sandbox.exec(script, timeout=PATIENCE)
    expect(result.exit_code == 0, result)


async def _swapped_files(sandbox: Sandbox) -> None:
    await sandbox.write("real", b"real")
    swaps = ("cp real f", "ln -s /dev/zero f", "mkfifo f", "mkdir f", "ln -s f f")
    await _begin(sandbox, "; ".join(f"{swap}; rm -rf f" for swap in swaps))
    for number in range(_ROUNDS):
        with suppress(PathRefused):
            found = await sandbox.read("f")
            expect(found in (None, b"", b"real") or found == b"%d" % (number - 1), found)
        with suppress(PathRefused):
            await sandbox.write("f", b"%d" % number)


async def _swapped_parents(sandbox: Sandbox) -> None:
    await sandbox.exec("mkdir -p p/q; echo inside > p/q/hostname", timeout=PATIENCE)
    await _begin(sandbox, "mv p/q p/r; ln -s /etc p/q; rm p/q; mv p/r p/q")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_ROUNDS // 2):
            with suppress(PathRefused):
                await sandbox.download("p", Path(folder) / str(number))
        expect(not _strays(Path(folder)), _strays(Path(folder)))


def _strays(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.name in ("passwd", "group")]


async def _growing(sandbox: Sandbox) -> None:
    await _begin(sandbox, "head -c 300K /dev/zero >> g; : > g")
    for _ in range(_ROUNDS):
        with suppress(PathRefused):
            found = await sandbox.read("g", max_bytes=100_000)
            expect(len(found or b"") <= 100_000, f"{len(found or b'')} bytes")


async def _read_while_it_floods(sandbox: Sandbox) -> None:
    await _begin(sandbox, "mkdir -p a/b/c; seq 100 | (cd a/b/c; xargs touch); rm -rf a")
    for _ in range(5):
        await sandbox.changes("/workspace")
        await _begin(sandbox, "mkdir -p a/b/c; rm -rf a")


ATTACKS = (
    Attack(KIND, "swaps a file for a link, a pipe, a directory and a loop while it is read and"
           " written", "its own contents, nothing, or refused; never a wait",
           inside(_swapped_files)),
    Attack(KIND, "swaps a directory for a link to /etc while it is downloaded",
           "nothing from beyond it", inside(_swapped_parents)),
    Attack(KIND, "grows and empties a file while it is read", "never more than was asked for",
           inside(_growing)),
    Attack(KIND, "makes and removes directories while changes are read", "it is ended first",
           inside(_read_while_it_floods)),
)  # fmt: skip
