"""Which paths of a container changed since it was handed out: two walks, compared.

Contents are not looked at, so this costs little however much there is. A change to a file sets its
ctime, which nothing inside can set back; but for a write through a mapping, which in memory sets
nothing at all: of that, the time of the first access tells.
"""

import asyncio
import stat
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gymsuite.sandbox import transfer
from gymsuite.sandbox.archive import Entry
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.writable import Writable

# Times are those of the last tick of a clock, a hundred a second at least.
_TICK_SECONDS = 0.011
# Beside what the inodes of a place allow: another name of a file needs no inode.
MOST_NAMES = 100_000


class Look(NamedTuple):
    """What lies in all places, by absolute path. `skipped` could not be looked at."""

    entries: Mapping[str, Entry]
    skipped: frozenset[str]
    complete: bool


async def look(channel: Channel, places: Sequence[Writable]) -> Look:
    """Look at all that lies in some places."""
    entries: dict[str, Entry] = {}
    skipped: set[str] = set()
    complete = True
    for place in places:
        found = await transfer.walk(channel, place.path, max_files=place.inodes + MOST_NAMES)
        entries |= {f"{place.path}/{entry.path}": entry for entry in found.entries}
        skipped |= {f"{place.path}/{one.path}".rstrip("/") for one in found.skipped}
        complete = complete and found.complete
    return Look(entries, frozenset(skipped), complete)


async def first_look(channel: Channel, places: Sequence[Writable]) -> Look:
    """Look before anybody uses a container, and make sure that what comes later looks later."""
    seen = await look(channel, places)
    await asyncio.sleep(_TICK_SECONDS)
    return seen


def changed(before: Look, after: Look) -> set[str]:
    """Name all that may differ and is no directory, before or after."""
    names = {path for path, entry in before.entries.items() if not _same(entry, after, path)}
    return names | {
        path
        for path, entry in after.entries.items()
        if path not in before.entries and not stat.S_ISDIR(entry.mode)
    }


def _same(entry: Entry, after: Look, path: str) -> bool:
    now = after.entries.get(path)
    if stat.S_ISDIR(entry.mode):
        # Its members count, each by itself.
        return now is None or stat.S_ISDIR(now.mode)
    return now is not None and now[1:] == entry[1:]
