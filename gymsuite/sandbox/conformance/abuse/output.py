"""Attacks by output and descriptors: floods, silence, streams that are closed or never read."""

import asyncio

from gymsuite.sandbox.conformance.abuse.attack import MIB, Answer, Attack, inside, python, shell
from gymsuite.sandbox.conformance.abuse.machine import peak_bytes
from gymsuite.sandbox.conformance.case import PATIENCE, alive, expect, same
from gymsuite.sandbox.protocol import Sandbox

KIND = "output"
_DESCRIPTORS = """
import os, sys
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError as error:
    print(error)
"""
_CLOSED = "import os; os.closerange(0, 100_000); os._exit(3)"


async def _flood(sandbox: Sandbox) -> None:
    before = peak_bytes()
    flood = "head -c 150M /dev/zero & head -c 150M /dev/zero >&2; wait"
    result = await sandbox.exec(flood, timeout=PATIENCE, max_output=MIB)
    same((result.exit_code, result.truncated), (0, True))
    same((len(result.stdout), len(result.stderr)), (MIB, MIB))
    expect(peak_bytes() - before < 32 * MIB, f"{peak_bytes() - before} bytes here")


async def _flood_that_nobody_reads(sandbox: Sandbox) -> None:
    before = peak_bytes()
    process = await sandbox.spawn("yes & yes >&2")
    for _ in range(5):
        await alive(sandbox)
    expect(peak_bytes() - before < 16 * MIB, f"{peak_bytes() - before} bytes here")
    await process.kill()


async def _input_that_is_never_read(sandbox: Sandbox) -> None:
    data = b"x" * (8 * MIB)
    result = await sandbox.exec("sleep 1000", stdin=data, timeout=0.5)
    expect(result.timed_out, result)


async def _floods_at_once(sandbox: Sandbox) -> None:
    flood = "head -c 12M /dev/zero; exec head -c 12M /dev/zero >&2"
    commands = [sandbox.exec(flood, timeout=PATIENCE) for _ in range(15)]
    for result in await asyncio.gather(*commands):
        same((result.exit_code, result.truncated, result.oom), (0, True, False))


async def _read_at_once(sandbox: Sandbox) -> None:
    await sandbox.write("big", bytes(24 * MIB))
    for data in await asyncio.gather(*[sandbox.read("big") for _ in range(16)]):
        same(len(data or b""), 24 * MIB)


ATTACKS = (
    Attack(KIND, "writes 300 MB to both streams, without a line's end",
           "`truncated`: head and tail, in bounded memory here", inside(_flood)),
    Attack(KIND, "writes 24 MB from each of fifteen commands at once",
           "`truncated`, by what its memory has room for", inside(_floods_at_once)),
    Attack(KIND, "has a file that takes much of its memory read many times at once",
           "one after the other", inside(_read_at_once), ("disk_bytes",)),
    Attack(KIND, "writes until it is ended", "`truncated`, `timed_out`",
           shell("yes", Answer((), ("timed_out",), perhaps=("truncated",)), timeout=0.7)),
    Attack(KIND, "writes from the background what nobody reads",
           "it waits inside; others run", inside(_flood_that_nobody_reads)),
    Attack(KIND, "never reads what it is sent", "`timed_out`", inside(_input_that_is_never_read)),
    Attack(KIND, "closes its streams and lives on in the background", "ends at once",
           shell("exec <&- >&- 2>&-; sleep 1000 &")),
    Attack(KIND, "closes all descriptors that there are", "nothing",
           python(_CLOSED, Answer((3,)))),
    Attack(KIND, "opens all descriptors that it may", "EMFILE",
           python(_DESCRIPTORS, Answer((0,), (), b"Too many open files"))),
)  # fmt: skip
