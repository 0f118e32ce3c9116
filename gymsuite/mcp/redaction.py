"""Keeps the secrets that servers are told out of what is written down."""

from collections.abc import Callable, Iterable, Mapping

from gymsuite.mcp.manifest import ServerEntry

Redact = Callable[[str], str]
"""The same text, without secrets."""

SECRET_NAMES = ("authorization", "cookie", "key", "token", "secret", "password", "credential")
"""A header or variable is secret if its name has one of these in it, in any case."""

_SHORTEST = 4


def nothing(text: str) -> str:
    """The text as it is."""
    return text


def without_secrets(
    entries: Mapping[str, ServerEntry], names: Iterable[str] = SECRET_NAMES
) -> Redact:
    """Put `[NAME]` in place of each secret value, and of the words that it consists of.

    `names` are parts of the names of headers and environment variables. Values of less than four
    characters would take ordinary words with them, and stay.
    """
    wanted = tuple(name.lower() for name in names)
    secrets: dict[str, str] = {}
    for entry in entries.values():
        for name, value in entry.settings.items():
            if any(part in name.lower() for part in wanted):
                secrets |= dict.fromkeys((value, *value.split()[1:]), name)
    ordered = sorted((s for s in secrets if len(s) >= _SHORTEST), key=len, reverse=True)

    def redact(text: str) -> str:
        for secret in ordered:
            text = text.replace(secret, f"[{secrets[secret]}]")
        return text

    return redact
