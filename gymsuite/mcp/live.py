"""Live servers: an episode's own, or one for all episodes where nothing is ever changed."""

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from gymsuite.errors import UsageError
from gymsuite.mcp.asking import listed
from gymsuite.mcp.link import Link
from gymsuite.mcp.listing import Listing, check_unchanged
from gymsuite.mcp.manifest import ServerEntry
from gymsuite.mcp.places import Connect, Place, reach
from gymsuite.mcp.requests import Allowance, OpenServers, Request, Result, Servers
from gymsuite.tools import Context


class Links:
    """Connections by server, each opened for its first call and checked against the listing."""

    def __init__(
        self, entries: Mapping[str, ServerEntry], listing: Listing, connect: Connect
    ) -> None:
        self._entries = entries
        self._listing = listing
        self._connect = connect
        self._links: dict[str, asyncio.Task[Link]] = {}
        self._opened: list[Link] = []

    async def call(self, request: Request, allowance: Allowance) -> Result:
        """See `Servers.call`."""
        name = request.server
        opening = self._links.get(name)
        if opening is None or _failed(opening):
            opening = asyncio.create_task(self._open(name, allowance.start_seconds))
            opening.add_done_callback(_failed)  # an episode may be gone before it is
            self._links[name] = opening
        link = await asyncio.shield(opening)
        return await link.call(request.tool, request.arguments, allowance.call_seconds)

    def close(self) -> None:
        """End them all."""
        for link in self._opened:
            link.close()

    async def _open(self, name: str, seconds: float) -> Link:
        if name not in self._entries:
            raise UsageError(f"no MCP server {name!r} is configured")
        link = Link(name, self._connect(self._entries[name]))
        self._opened.append(link)
        wanted = self._listing.servers.get(name, ())
        check_unchanged(name, wanted, await listed(link, seconds))
        return link


class OwnServers:
    """An episode's own: they end with it, and cannot be forked."""

    def __init__(self, links: Links) -> None:
        self._links = links

    async def call(self, request: Request, allowance: Allowance) -> Result:
        """See `Servers.call`."""
        return await self._links.call(request, allowance)

    def fork(self) -> "OwnServers":
        """Refuse: nobody knows what a server holds."""
        raise UsageError("an episode with live MCP servers of its own cannot be forked")

    async def left(self) -> Mapping[str, Any]:
        """Nothing: a verifier looks at what was changed, not at who changed it."""
        return {}

    def close(self) -> None:
        """End the servers."""
        self._links.close()


class SharedServers:
    """A view of servers that all episodes share."""

    def __init__(self, links: Links) -> None:
        self._links = links

    async def call(self, request: Request, allowance: Allowance) -> Result:
        """See `Servers.call`."""
        return await self._links.call(request, allowance)

    def fork(self) -> "SharedServers":
        """The same view."""
        return self

    async def left(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Nothing: others go on."""


def per_episode(entries: Mapping[str, ServerEntry], listing: Listing, place: Place) -> OpenServers:
    """Servers of each episode's own, in a sandbox (`in_sandbox`) or on this machine (`on_host`)."""

    def open_servers(context: Context) -> Servers:
        return OwnServers(Links(entries, listing, place(context)))

    return open_servers


def shared(entries: Mapping[str, ServerEntry], listing: Listing) -> OpenServers:
    """One set of servers for all episodes of an event loop, on this machine, until it ends.

    Right only for servers that change nothing: episodes would see each other's doings.
    """
    of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Links] = WeakKeyDictionary()

    def open_servers(_: Context) -> Servers:
        loop = asyncio.get_running_loop()
        if loop not in of_loop:
            of_loop[loop] = Links(entries, listing, reach)
        return SharedServers(of_loop[loop])

    return open_servers


def _failed(opening: asyncio.Task[Link]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)
