"""A queue with lanes that take turns; within a lane those who have begun already come first."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from gymsuite.sandbox.allowance import Share
from gymsuite.sandbox.turns import Holder


@dataclass(eq=False)
class Ticket:
    """One sandbox that is wanted, or open. `turn` is there while it waits."""

    holder: Holder
    share: Share
    since: float = field(default_factory=time.monotonic)
    turn: "asyncio.Future[None] | None" = None
    granted: bool = False


@dataclass
class _Lane:
    begun: deque[Ticket] = field(default_factory=deque)
    fresh: deque[Ticket] = field(default_factory=deque)

    def head(self) -> Ticket | None:
        for line in (self.begun, self.fresh):
            while line and _is_over(line[0]):
                line.popleft()
            if line:
                return line[0]
        return None


class FairQueue:
    """Tickets that wait. One that was granted, or whose turn was cancelled, is not there."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}

    def push(self, ticket: Ticket, lane: str) -> None:
        """Go to the end of a lane, but before those who have had no sandbox yet."""
        own = self._lanes.setdefault(lane, _Lane())
        (own.begun if ticket.holder.begun else own.fresh).append(ticket)

    def head(self) -> Ticket | None:
        """Whose turn is next."""
        for name, lane in list(self._lanes.items()):
            ticket = lane.head()
            if ticket is not None:
                return ticket
            del self._lanes[name]
        return None

    def pop(self) -> None:
        """Take out whose turn was next; the turn after it is another lane's."""
        if self.head() is None:
            return
        name = next(iter(self._lanes))
        lane = self._lanes.pop(name)
        (lane.begun or lane.fresh).popleft()
        self._lanes[name] = lane

    def waiting(self) -> list[Ticket]:
        """All that wait."""
        return [
            ticket
            for lane in self._lanes.values()
            for ticket in (*lane.begun, *lane.fresh)
            if not _is_over(ticket)
        ]


def _is_over(ticket: Ticket) -> bool:
    return ticket.granted or ticket.turn is None or ticket.turn.cancelled()
