"""Directories between this machine and a sandbox: up, down, and looked at."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import PathRefused, SandboxError
from gymsuite.sandbox import archive, wire
from gymsuite.sandbox.archive import Entry, Record, Skipped, WalkState
from gymsuite.sandbox.channel import FILE_SECONDS, Channel, refusal
from gymsuite.sandbox.extraction import Extraction
from gymsuite.sandbox.gathering import batches
from gymsuite.sandbox.protocol import DEFAULT_TREE_BYTES, DEFAULT_TREE_FILES
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.threads import in_thread
from gymsuite.sandbox.wire import Request, Unsendable

TREE_SECONDS = 300.0
_MOST_FILES = (1 << 32) - 1
_MOST_BYTES = (1 << 63) - 1

Take = Callable[[list[Record]], Awaitable[None]]


class Walk(NamedTuple):
    """All that lies below a directory, parents before children, in no other order.

    `skipped` are places that could not be looked at; what the kernel makes up, as in /proc, is left
    out. It is `complete` unless there was more than asked for.
    """

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
    complete: bool


async def walk(channel: Channel, root: str, *, max_files: int = DEFAULT_TREE_FILES) -> Walk:
    """Look at all that lies below an absolute path, following no link but those that lead there.

    Modes forbid nothing to it. Raises `PathRefused` where that is no directory.
    """
    entries: list[Entry] = []
    skipped: list[Skipped] = []

    async def take(records: list[Record]) -> None:
        for record in records:
            if isinstance(record, Entry):
                entries.append(record)
            elif isinstance(record, Skipped):
                skipped.append(record)

    state = await receive(channel, Request.WALK, root, (max_files, 0), take)
    return Walk(tuple(entries[:max_files]), tuple(skipped), state is WalkState.DONE)


async def download(
    channel: Channel,
    source: str,
    target: Path,
    *,
    max_bytes: int = DEFAULT_TREE_BYTES,
    max_files: int = DEFAULT_TREE_FILES,
) -> None:
    """Copy what lies below an absolute path to a directory that is made, or leave nothing.

    `max_bytes` bounds contents and names together. Raises `PathRefused`, which names the member
    that is too much, or cannot be read, or would lead out; and `UsageError` where `target` exists.
    """
    extraction = Extraction(target, max_bytes=max_bytes, max_files=max_files)

    async def take(records: list[Record]) -> None:
        await in_thread(lambda: extraction.add(records))

    try:
        await in_thread(extraction.begin)
        state = await receive(channel, Request.PACK, source, (max_files, max_bytes), take)
        if state is WalkState.TOO_MANY:
            raise PathRefused(f"{source} has more than {max_files} members", retryable=False)
        if state is WalkState.TOO_LARGE:
            raise PathRefused(f"{source} is larger than {max_bytes} bytes", retryable=False)
        await in_thread(extraction.finish)
    finally:
        await finish(asyncio.to_thread(extraction.discard))


async def upload(channel: Channel, source: Path, target: str) -> None:
    """Copy a directory of this machine to an absolute path, into what is there already.

    Permissions are kept; links are copied as links; a file or a link takes the place of what had
    its name. Raises `UsageError` where `source` cannot be read, or holds anything else, and
    `PathRefused` where `target` cannot take it.
    """
    waiting = batches(source)
    following = in_thread(lambda: next(waiting, None))
    try:
        async with asyncio.timeout(TREE_SECONDS):
            while (batch := await following) is not None:
                # Read while the one before it is made.
                following = in_thread(lambda: next(waiting, None))
                await make(channel, target, batch)
    except TimeoutError:
        raise SandboxError(f"{source} was not uploaded in {TREE_SECONDS:g} seconds") from None


async def make(channel: Channel, target: str, batch: bytes) -> None:
    """Make entries, as `gathering` has them, below an absolute path. Raises `PathRefused`."""
    error, path = await channel.ask(
        Request.UNPACK, _text(target), batch, within=FILE_SECONDS, parse=archive.unpacked
    )
    if error:
        raise refusal(f"cannot make {path + ' in ' if path else ''}{target}", error)


async def receive(
    channel: Channel, kind: Request, root: str, caps: tuple[int, int], take: Take
) -> WalkState:
    """Walk or pack what lies below an absolute path, no more than so many files and bytes.

    Raises `PathRefused` where that is no directory.
    """
    files, size = max(0, min(caps[0], _MOST_FILES)), max(0, min(caps[1], _MOST_BYTES))
    request = b"".join((wire.number(files), wire.long_number(size), _text(root)))
    handle = 0
    try:
        async with asyncio.timeout(TREE_SECONDS):
            piece = await channel.ask(kind, request, within=0, parse=archive.piece)
            while piece.state is WalkState.MORE:
                handle = piece.handle
                await take(piece.records)
                request = wire.number(handle)
                piece = await channel.ask(Request.NEXT, request, within=0, parse=archive.piece)
            handle = 0
            if piece.state is WalkState.FAILED:
                raise refusal(f"cannot look at the directory {root}", piece.error)
            await take(piece.records)
    except TimeoutError:
        raise SandboxError(f"{root} was not read in {TREE_SECONDS:g} seconds") from None
    finally:
        if handle:
            channel.drop(handle)
    return piece.state


def _text(path: str) -> bytes:
    try:
        return wire.text(path)
    except Unsendable as reason:
        raise PathRefused(f"no directory {path[:80]!r}: {reason}", retryable=False) from reason
