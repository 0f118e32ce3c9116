"""The episodes that are on offer: each begins, is played by a visitor, ends, and is recorded."""

import asyncio
import difflib
import heapq
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from gymsuite.environment import Environment
from gymsuite.errors import UsageError
from gymsuite.mcp.visitor import Visitor
from gymsuite.rollout import rollout
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Rollout, Task
from gymsuite.worlds.procedural import Place

Keep = Callable[[str, Rollout], None]
"""Takes an episode's id and its record, when it has ended."""

_MOST_ENDED = 10_000


class FullError(UsageError):
    """As many episodes are open as may be."""


@dataclass(frozen=True)
class Offer:
    """What is served: tasks in turn, and again with the next seed when all had theirs.

    `places` says which of the environment's tasks; those made on demand are made when they begin.
    """

    environment: Environment
    places: Sequence[Place]
    open_sandbox: OpenSandbox
    seed: int = 0
    max_episodes: int = 64
    idle_seconds: float = 1800.0


@dataclass
class Sitting:
    """One episode: who plays it, and in the end its record, without what was said.

    `turn` is how many began before it.
    """

    id: str
    turn: int
    task: Task
    seed: int
    visitor: Visitor
    record: Rollout | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Desk:
    """Begins episodes and remembers them. Leaving the block ends them, scored if it is in order.

    Leaving raises what `keep` raised: a record that was lost is never passed over.
    """

    def __init__(self, offer: Offer, keep: Keep) -> None:
        self.offer = offer
        self._keep = keep
        self._begun = 0
        self._given_back: list[int] = []
        self._sittings: dict[str, Sitting] = {}
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._faults: list[Exception] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        playing = list(self._playing.values())
        for sitting in self._sittings.values():
            sitting.visitor.leave("server_stopped")
        if error is not None:
            for task in playing:
                task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        if error is None and self._faults:
            raise self._faults[0]

    @property
    def sittings(self) -> tuple[Sitting, ...]:
        """All that are remembered, in the order in which they began."""
        return tuple(self._sittings.values())

    def find(self, name: str) -> Sitting | None:
        """The episode of that id."""
        return self._sittings.get(name)

    def begin(self, task: str | None = None, seed: int | None = None) -> Sitting:
        """Begin an episode; what is not given follows from how many began before.

        Raises `FullError` where too many are open, and `UsageError` for an unknown task.
        """
        if len(self._playing) >= self.offer.max_episodes:
            raise FullError(f"{len(self._playing)} episodes are open, as many as may be")
        places = self.offer.places
        turn = self._given_back[0] if self._given_back else self._begun
        place = places[turn % len(places)] if task is None else _find(places, task)
        chosen = self.offer.environment.tasks[place.position]
        if seed is None:
            seed = self.offer.seed + turn // len(places)
        if self._given_back:
            heapq.heappop(self._given_back)
        else:
            self._begun += 1
        name = secrets.token_hex(16)
        sitting = Sitting(name, turn, chosen, seed, Visitor(self.offer.idle_seconds))
        self._sittings[name] = sitting
        self._playing[name] = asyncio.create_task(self._play(sitting))
        self._forget()
        return sitting

    async def withdraw(self, sitting: Sitting) -> None:
        """Take an episode back that nobody came to play: no record, and its turn is the next."""
        heapq.heappush(self._given_back, sitting.turn)
        playing = self._playing.get(sitting.id)
        if playing is not None:
            playing.cancel()
            await asyncio.wait((playing,))
        self._sittings.pop(sitting.id, None)

    async def _play(self, sitting: Sitting) -> None:
        record: Rollout | None = None
        try:
            record = await rollout(
                self.offer.environment,
                sitting.task,
                lambda _: sitting.visitor,
                self.offer.open_sandbox,
                seed=sitting.seed,
                agent_name=f"mcp/{sitting.id}",
            )
            self._keep(sitting.id, record)
        except Exception as error:  # noqa: BLE001 - whoever leaves the block hears of it
            self._faults.append(error)
        finally:
            del self._playing[sitting.id]
            sitting.visitor.conclude(record)
            sitting.record = _outcome(record)
            sitting.over.set()

    def _forget(self) -> None:
        """Drop the oldest that ended, so that a server that runs for weeks does not grow."""
        ended = [name for name in self._sittings if name not in self._playing]
        for name in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._sittings[name]


def _outcome(record: Rollout | None) -> Rollout | None:
    """What is remembered of an episode: how it ended, without all that was said."""
    return record and record.model_copy(update={"messages": (), "submission": None})


def _find(places: Sequence[Place], wanted: str) -> Place:
    for place in places:
        if place.id == wanted:
            return place
    near = difflib.get_close_matches(wanted, [place.id for place in places], n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"no task {wanted!r} is on offer{hint}")
