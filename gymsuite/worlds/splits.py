"""What belongs to which split: names, values, templates and compositions are shared out."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from gymsuite.worlds.draws import Draws

T = TypeVar("T")

SPLITS = ("train", "val", "test-iid", "test-ood")
_SHARES = {"train": (0, 1, 2, 3), "val": (4,), "test-iid": (5,), "test-ood": (6, 7)}


def share(split: str, items: Sequence[T]) -> tuple[T, ...]:
    """The items that this split has, and no other: of each eight, four, one, one and two."""
    return tuple(item for at, item in enumerate(items) if at % 8 in _SHARES[split])


def pick(draws: Draws, split: str, items: Sequence[T]) -> T:
    """One of the items that this split has."""
    return draws.choice(share(split, items))


def shares(items: Mapping[str, Sequence[T]]) -> Mapping[str, Mapping[str, Sequence[T]]]:
    """By split, what each list has for it."""
    return {split: {name: share(split, of) for name, of in items.items()} for split in SPLITS}
