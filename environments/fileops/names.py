"""Words for folders, files and their contents; each split has its own."""

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

FOLDERS = (
    "accounts", "bulletins", "charts", "dispatch", "estates", "fieldwork", "gallery", "harbour",
    "intake", "journals", "kitchen", "ledger", "minutes", "notices", "orchard", "press",
    "quarry", "rosters", "stations", "timber", "uploads", "valley", "wardrobe", "yard",
    "archive-room", "bakery", "crossing", "depot", "exhibits", "foundry", "garden", "hangar",
    "island", "jetty", "kennel", "library", "mill", "nursery", "office", "pantry",
)  # fmt: skip
PROTECTED = (
    "sealed",
    "frozen",
    "evidence",
    "untouched",
    "originals",
    "escrow",
    "vault",
    "reference",
)
STEMS = (
    "Anchor", "Basket", "Candle", "Dragon", "Ember", "Falcon", "Glacier", "Hammer", "Ivory",
    "Jasmine", "Kettle", "Lantern", "Meadow", "Needle", "Orbit", "Pepper", "Quartz", "Raven",
    "Saddle", "Thistle", "Umber", "Velvet", "Willow", "Yarrow", "Zephyr", "Acorn", "Barley",
    "Cedar", "Dune", "Elm", "Fennel", "Gravel", "Heather", "Indigo", "Juniper", "Kelp",
    "Lichen", "Marble", "Nectar", "Onyx", "Pebble", "Quill", "Reed", "Sable", "Tulip", "Urchin",
    "Violet", "Walnut", "Yucca", "Zinnia", "Amber", "Birch", "Clover", "Damson", "Egret",
    "Fern", "Garnet", "Hazel", "Iris", "Jade", "Kestrel", "Laurel", "Mallow", "Nettle",
)  # fmt: skip
_WORDS = (
    "amount", "before", "carried", "delivered", "early", "forward", "given", "handed", "inside",
    "joined", "kept", "later", "moved", "noted", "ordered", "placed",
)  # fmt: skip


def stems(split: str) -> tuple[str, ...]:
    """Words that this split names its files by."""
    return share(split, STEMS)


def stem(draws: Draws, split: str) -> str:
    """One of them."""
    return draws.choice(stems(split))


def sentence(draws: Draws) -> str:
    """A line that differs from all others."""
    words = " ".join(draws.choice(_WORDS) for _ in range(5))
    return f"{words} {draws.below(10**9)}\n"
