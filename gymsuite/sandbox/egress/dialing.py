"""Connects to a host that was allowed by name: resolved once, checked, and connected as checked."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gymsuite.sandbox.egress.names import Address, Endpoint, address_of, is_public
from gymsuite.sandbox.egress.request import Refusal
from gymsuite.sandbox.threads import in_thread

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host name; raises OSError for none, RuntimeError where it cannot ask."""

_RESOLVE_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
_MOST_ADDRESSES = 4
_NOBODYS = {4: ipaddress.ip_address("192.0.2.1"), 6: ipaddress.ip_address("2001:db8::1")}


async def resolve(host: str) -> Sequence[str]:
    """Ask this machine's resolver, which may be slow, and must hold up nobody else's threads."""
    found = await in_thread(lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    return [str(address[4][0]) for address in found]


def is_elsewhere(address: Address) -> bool:
    """Whether it is an address of the open internet, and none of this machine's own."""
    return is_public(address) and not is_own(address)


def is_own(address: Address) -> bool:
    """Whether this machine would reach itself there, past whatever guards it from the internet."""
    # With ip_nonlocal_bind a machine takes any address for its own, which then tells nothing.
    return _can_bind(address) and not _can_bind(_NOBODYS[address.version])


def _can_bind(address: Address) -> bool:
    try:
        with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:  # also on a machine without IPv6, where no such address can be reached either
        return False
    return True


@dataclass(frozen=True)
class Dialer:
    """How hosts are reached. `may_reach` refuses addresses: by default all but the internet's.

    A name of the open internet may resolve to an address of this machine or of its network.
    """

    resolve: Resolve = resolve
    may_reach: Callable[[Address], bool] = is_elsewhere

    async def dial(self, endpoint: Endpoint) -> socket.socket:
        """Connect. Raises `Refusal`."""
        addresses = await self._addresses(endpoint.host)
        reachable = [address for address in addresses if self.may_reach(address)]
        if not reachable:
            raise Refusal(
                "403 Forbidden", "address", f"{endpoint.host} is at no address of the internet"
            )
        for address in reachable[:_MOST_ADDRESSES]:
            connected = await _connect(address, endpoint.port)
            if connected is not None:
                return connected
        raise Refusal("502 Bad Gateway", "connect", f"{endpoint} does not answer")

    async def _addresses(self, host: str) -> Sequence[Address]:
        own = address_of(host)
        if own is not None:
            return [own]
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                found = await self.resolve(host)
            return [ipaddress.ip_address(text.partition("%")[0]) for text in dict.fromkeys(found)]
        except (OSError, ValueError, RuntimeError) as error:  # the last for want of a thread
            raise Refusal("502 Bad Gateway", "resolve", f"{host} has no address") from error


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004 - IPv4


async def _connect(address: Address, port: int) -> socket.socket | None:
    try:
        connection = socket.socket(_family(address), socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        connection.setblocking(False)
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
    except OSError:
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection
