"""Lets so many sandboxes be open at once as the machine can carry; the others wait their turn.

A wait is never an error, and stops the clock of every deadline that its caller runs under. How
much a sandbox counts is in `allowance`.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from gymsuite.deadline import queueing
from gymsuite.sandbox.allowance import Allowance
from gymsuite.sandbox.capacity import Machine
from gymsuite.sandbox.fair_queue import FairQueue, Ticket
from gymsuite.sandbox.patience import PATIENCE_SECONDS, Patience
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.turns import current_holder, current_lane, forget
from gymsuite.types import SandboxSpec

_LOOK_SECONDS = 0.25


class Counters(NamedTuple):
    """How it goes: `queue_seconds` is the sum of all waits, `longest_seconds` that of now."""

    running: int = 0
    queued: int = 0
    admitted: int = 0
    queue_seconds: float = 0.0
    longest_seconds: float = 0.0


class Admission:
    """Whom to let in: one for all providers of an event loop, or one for each.

    Several processes share a machine by the memory that is really left, which all of them see.
    Whoever holds a sandbox is never made to wait for another one.

    Args:
        memory_bytes: What may be counted at once; by default what the machine has, less a reserve.
        processors: The same, by default all.
        patience_seconds: How long the queue of an idle machine may stand still before it is let in
            beyond what may be counted; math.inf is for ever. See `patience`.
        machine: What to look at; by default this machine.
    """

    def __init__(
        self,
        *,
        memory_bytes: float | None = None,
        processors: float | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
        machine: Machine | None = None,
    ) -> None:
        machine = machine or Machine.this()
        self._allowance = Allowance(machine, memory_bytes=memory_bytes, processors=processors)
        self._patience = Patience(machine, patience_seconds)
        self._queue = FairQueue()
        self._timer: asyncio.TimerHandle | None = None
        self._running = 0
        self._admitted = 0
        self._waited = 0.0

    @classmethod
    def unlimited(cls) -> "Admission":
        """Let everyone in at once."""
        return cls(machine=Machine.boundless())

    @property
    def counters(self) -> Counters:
        """How many sandboxes are open and how many wait, and for how long."""
        waits = [time.monotonic() - ticket.since for ticket in self._queue.waiting()]
        return Counters(
            running=self._running,
            queued=len(waits),
            admitted=self._admitted,
            queue_seconds=self._waited + sum(waits),
            longest_seconds=max(waits, default=0.0),
        )

    def gate(self, open_sandbox: OpenSandbox) -> OpenSandbox:
        """Open sandboxes that way, each in its turn."""

        @asynccontextmanager
        async def open_in_turn(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            async with self.turn(spec), open_sandbox(spec) as sandbox:
                yield sandbox

        return open_in_turn

    @asynccontextmanager
    async def turn(self, spec: SandboxSpec) -> AsyncIterator[None]:
        """Wait until a sandbox may be opened, and count it as long as the block lasts.

        Raises `SandboxError` at once for one that this machine could never hold.
        """
        share = self._allowance.share(spec)
        holder = current_holder()
        ticket = Ticket(holder, share)
        try:
            await self._enter(ticket)
            try:
                yield
            finally:
                self._leave(ticket)
        finally:
            forget(holder)

    async def _enter(self, ticket: Ticket) -> None:
        if ticket.holder.held or (self._queue.head() is None and self._fits(ticket)):
            self._grant(ticket)
            return
        ticket.turn = asyncio.get_running_loop().create_future()
        let_in = partial(self._grant, ticket)
        ticket.holder.waiting.append(let_in)
        self._queue.push(ticket, current_lane())
        self._watch()
        try:
            with queueing():
                await ticket.turn
        except BaseException:
            ticket.turn.cancel()
            if ticket.granted:
                self._leave(ticket)
            self._move_up()
            raise
        finally:
            self._waited += time.monotonic() - ticket.since
            ticket.holder.waiting.remove(let_in)

    def _grant(self, ticket: Ticket) -> None:
        """Count it, and let in whatever else its holder waits for: it holds a sandbox now."""
        if ticket.granted or (ticket.turn is not None and ticket.turn.done()):
            return
        if ticket.turn is not None:
            ticket.turn.set_result(None)
        ticket.granted = ticket.holder.begun = True
        ticket.holder.held += 1
        self._running += 1
        self._admitted += 1
        self._allowance.take(ticket, ticket.share)
        for let_in in tuple(ticket.holder.waiting):
            let_in()

    def _leave(self, ticket: Ticket) -> None:
        ticket.holder.held -= 1
        self._running -= 1
        self._allowance.give_back(ticket, ticket.share)
        if self._timer is not None:
            self._patience.renew()
        self._move_up()

    def _fits(self, ticket: Ticket) -> bool:
        return self._allowance.fits(ticket.share) and self._allowance.has_memory(ticket.share)

    def _move_up(self) -> None:
        """Let in all that there is room for, in order: a large one is not overtaken for ever."""
        while (ticket := self._queue.head()) is not None and self._fits(ticket):
            self._queue.pop()
            self._grant(ticket)
        if ticket is None and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Look at the machine again and again, as long as someone waits."""
        if self._timer is None:
            self._patience.renew()
            self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._move_up()
        ticket = self._queue.head()
        if ticket is None:
            return
        if self._patience.is_over() and self._allowance.has_memory(ticket.share):
            self._queue.pop()
            self._grant(ticket)
            self._patience.shorten()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
