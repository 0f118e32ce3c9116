"""Mail addresses as people write them, and which of them lead to the same mailbox."""

import re
import unicodedata

_ADDRESS = r"(?:mailto:)?([\w.%+-]+@(?:[\w-]+\.)+\w+)"
_ENTRY = re.compile(rf"\s*(?:(?:\"[^\"]*\"|[^\",;<>@])*<\s*{_ADDRESS}\s*>|{_ADDRESS})\s*([,;]|\Z)")


def addresses(text: str) -> tuple[str, ...]:
    """The addresses of a text such as `Ann Lee <ann@firm.test>, bob@firm.test`, sorted.

    Each is in one spelling, so that none gets round what is forbidden by another one. Raises
    `ValueError` for a text that is anything else.
    """
    text = unicodedata.normalize("NFKC", text).strip()
    found: set[str] = set()
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise ValueError(f"{text[at : at + 60]!r} is no mail address")
        found.add((entry[1] or entry[2]).casefold())
        at = entry.end()
    return tuple(sorted(found))


def mailboxes(text: str) -> frozenset[str]:
    """Where mail to these addresses ends up: `ann+anything@firm.test` is `ann@firm.test`."""
    return frozenset(map(_mailbox, addresses(text)))


def _mailbox(address: str) -> str:
    local, domain = address.rsplit("@", 1)
    return f"{local.split('+', 1)[0] or local}@{domain}"
