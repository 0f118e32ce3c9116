"""How far an index is built, for whoever shows it."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how many documents are indexed, and of how many."""


def silent(_done: int, _total: int) -> None:
    """Report nothing."""
