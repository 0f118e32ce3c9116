"""Waiting for what happens inside, for as long as a busy machine may take."""

import asyncio

from gymsuite.sandbox.conformance.case import PATIENCE, NotKept
from gymsuite.sandbox.protocol import Sandbox

_EVERY = 0.02


async def command_words(sandbox: Sandbox) -> set[str]:
    """Say all words of all command lines inside."""
    script = "cat /proc/[0-9]*/cmdline 2>/dev/null"
    return set((await sandbox.exec(script, timeout=PATIENCE)).stdout.decode().split("\0"))


async def zombies(sandbox: Sandbox) -> list[bytes]:
    """Say the state lines of all zombies inside."""
    result = await sandbox.exec("cat /proc/[0-9]*/stat 2>/dev/null", timeout=PATIENCE)
    return [line for line in result.stdout.splitlines() if b") Z " in line]


async def appears(sandbox: Sandbox, path: str) -> None:
    """Wait for a file."""
    try:
        async with asyncio.timeout(PATIENCE):
            while await sandbox.read(path) is None:  # noqa: ASYNC110 - it is in another world
                await asyncio.sleep(_EVERY)
    except TimeoutError:
        raise NotKept(f"no file {path!r} in {PATIENCE:g} seconds") from None


async def words_vanish(sandbox: Sandbox, *words: str) -> None:
    """Wait for the end of every process with one of the words in its command line."""
    try:
        async with asyncio.timeout(PATIENCE):
            while set(words) & await command_words(sandbox):  # noqa: ASYNC110 - the same
                await asyncio.sleep(_EVERY)
    except TimeoutError:
        raise NotKept(f"still running: {words}") from None


async def zombies_vanish(sandbox: Sandbox) -> None:
    """Wait until there is no zombie inside."""
    try:
        async with asyncio.timeout(PATIENCE):
            while await zombies(sandbox):  # noqa: ASYNC110 - the same
                await asyncio.sleep(_EVERY)
    except TimeoutError:
        raise NotKept(f"{len(await zombies(sandbox))} zombies that nobody reaps") from None
