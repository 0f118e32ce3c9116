"""Text from models and sandboxes, made fit for a terminal."""

from rich.text import Text

_KEPT = "\n\t"


def plain(text: str, style: str = "") -> Text:
    """Text as it is, but for control characters: a sandbox may send a terminal anything."""
    safe = (letter if letter.isprintable() or letter in _KEPT else "\ufffd" for letter in text)
    return Text("".join(safe), style=style)
