"""Host names, ports and addresses, read strictly: what is not plainly one of them is refused."""

import ipaddress
import re
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LONGEST_NAME = 253
_LAST_PORT = 65_535
# What some versions of Python take for the internet: special uses, site-local addresses, and the
# services of a cloud for its own machines.
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "fec0::/10", "3fff::/20"),
    )
)


class Endpoint(NamedTuple):
    """A host, in lower case and without a dot at its end, and a port. IPv6 has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host(text: str) -> str | None:
    """A host name or an address in its usual form, else None.

    Numbers that some resolvers take for addresses (127.1, 0x7f000001, 2130706433) are neither.
    """
    if text.startswith("["):
        return _ipv6(text)
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    if _NUMERIC.fullmatch(labels[-1]):
        return name if address_of(name) else None
    return name


def parse_endpoint(text: str, default_port: int | None = None) -> Endpoint | None:
    """`host:port`, or a host alone where there is a default port; else None."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default_port or "")
    known = parse_host(host)
    if known is None or not _PORT.fullmatch(port) or int(port) > _LAST_PORT:
        return None
    return Endpoint(known, int(port))


def address_of(host: str) -> Address | None:
    """The address that a host is by itself, or None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether it is an address of the open internet, and not one that stands for another."""
    if isinstance(address, ipaddress.IPv6Address) and (address.sixtofour or address.ipv4_mapped):
        return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _ipv6(text: str) -> str | None:
    address = address_of(text[1:-1]) if text.endswith("]") and "%" not in text else None
    return str(address) if isinstance(address, ipaddress.IPv6Address) else None
