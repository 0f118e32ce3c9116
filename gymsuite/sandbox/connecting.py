"""Starts a container and opens the channel to its exec server.

The server comes to a socket of this machine where it can. Where it cannot, as in a runtime with a
kernel of its own, it speaks over the connection that Docker relays.
"""

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox.attach import AttachStream
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.docker import Engine
from gymsuite.sandbox.engine import Wish
from gymsuite.sandbox.hierarchies import limit_sockets
from gymsuite.sandbox.rendezvous import Rendezvous
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.stream import SocketStream

_START_SECONDS = 60.0
# The exec server shares its processors with what it runs, by the container's CPU limit.
_GRACE_SECONDS = 30.0
_MOST_IMPORTANT = -20


class Connected(NamedTuple):
    """A container that runs, by its id, and its open channel."""

    id: str
    channel: Channel


class Meeting(Protocol):
    """Where an exec server may come to; see `Rendezvous`."""

    path: Path

    async def accept(self) -> int:
        """Wait for whoever comes first, and return its process id."""
        ...

    def take(self) -> socket.socket:
        """Take over the connection."""
        ...

    def close(self) -> None:
        """Take no more connections."""
        ...


def meet(directory: Path) -> Meeting:
    """Make a place to meet one exec server. Raises `SandboxError`."""
    try:
        return Rendezvous(directory)
    except OSError as error:
        raise SandboxError(f"cannot make a socket for a container: {error}") from error


async def connect(engine: Engine, wish: Wish, meeting: Meeting) -> Connected:
    """Start a container. It may be there when this raises `SandboxError`; see `Engine.start`."""
    try:
        started = await engine.start(wish._replace(channel=meeting.path))
        stream = AttachStream(started.connection)
        return Connected(started.id, await _meet(engine, started.id, meeting, stream, wish))
    finally:
        meeting.close()


async def _meet(
    engine: Engine, container: str, meeting: Meeting, stream: AttachStream, wish: Wish
) -> Channel:
    relayed = Channel(stream, grace=_GRACE_SECONDS)
    try:
        peer = await _who_comes(meeting, relayed)
        if peer is None:
            return relayed
        channel = await _direct(engine, container, meeting, peer, wish)
    except SandboxDead as error:
        said = stream.complaint or error
        await finish(relayed.close())
        raise SandboxError(f"the exec server did not start in a container: {said}") from error
    except BaseException:
        await finish(relayed.close())
        raise
    try:
        await finish(relayed.close())
    except BaseException:
        await finish(channel.close())
        raise
    return channel


async def _who_comes(meeting: Meeting, relayed: Channel) -> int | None:
    """Wait for a process that comes, or else for a server that speaks from where it is."""
    coming = asyncio.create_task(meeting.accept())
    speaking = asyncio.create_task(relayed.open(within=_START_SECONDS))
    try:
        await asyncio.wait((coming, speaking), return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        await speaking
        return None
    finally:
        await finish(_cancel(coming, speaking))


def _set_up(first: int, wish: Wish) -> None:
    """Do for a container's first process what the Engine cannot, as far as this process may."""
    limit_sockets(first, wish.memory_bytes)
    # However many processes its commands have, the exec server answers in time.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, first, _MOST_IMPORTANT)


async def _direct(
    engine: Engine, container: str, meeting: Meeting, peer: int, wish: Wish
) -> Channel:
    first = await engine.first_process(container)
    if peer != first:
        raise SandboxError(f"process {peer} came for container {container[:12]}, not {first}")
    channel = Channel(SocketStream(meeting.take()), grace=_GRACE_SECONDS)
    try:
        await channel.open(within=_START_SECONDS)
        await asyncio.to_thread(_set_up, peer, wish)
    except BaseException:
        await finish(channel.close())
        raise
    return channel


async def _cancel(*tasks: asyncio.Task[int] | asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
