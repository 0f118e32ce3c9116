"""An agent whose actions come from outside, one after another, as they arrive."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from gymsuite.errors import Truncated
from gymsuite.types import Action, Message, Observation, Rollout, ToolCall

MOST_WAITING_CALLS = 256
OVER = "error: the episode is over; this call was not run"
_ERROR = "error: "


class Reply(NamedTuple):
    """What a tool call gave, and whether it says that something was wrong with it."""

    text: str
    is_error: bool


class Visitor:
    """Plays one rollout as an `Agent`, with the calls that someone else makes.

    It leaves by itself, which ends and scores the episode, when nothing comes for `idle_seconds`.
    """

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._actions: asyncio.Queue[Action | Truncated] = asyncio.Queue()
        self._replies: dict[str, asyncio.Future[Reply]] = {}
        self._greeted = asyncio.Event()
        self._greeting: Observation | None = None
        self._calls = 0
        self._over = ""

    @property
    def calls(self) -> int:
        """How many calls were made so far."""
        return self._calls

    async def greeting(self) -> Observation | None:
        """The task's messages and tools; None if the episode broke before it gave them."""
        await self._greeted.wait()
        return self._greeting

    async def act(self, observation: Observation) -> Action:
        """See `Agent.act`: hand the replies over, and wait for the next action."""
        if self._greeting is None:
            self._greeting = observation
            self._greeted.set()
        self._answer(observation.messages)
        try:
            async with asyncio.timeout(self._idle_seconds):
                action = await self._actions.get()
        except TimeoutError as error:
            raise Truncated("idle") from error
        if isinstance(action, Truncated):
            raise action
        return action

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Have a tool called when it is its turn, and wait for the reply.

        Whoever stops waiting does not stop the call.
        """
        if self._over:
            return Reply(self._over, is_error=True)
        if len(self._replies) >= MOST_WAITING_CALLS:
            return Reply(f"error: {len(self._replies)} calls are waiting already", is_error=True)
        self._calls += 1
        call = ToolCall(id=f"call_{self._calls}", name=name, arguments=arguments)
        self._replies[call.id] = asyncio.get_running_loop().create_future()
        self._actions.put_nowait(Message(role="assistant", tool_calls=(call,)))
        return await asyncio.shield(self._replies[call.id])

    def say(self, text: str) -> None:
        """Say something in plain text at last: the episode ends, whoever may respond to it."""
        self._actions.put_nowait(Message(role="assistant", content=text))
        self._actions.put_nowait(Truncated("ended"))

    def leave(self, reason: str) -> None:
        """End the episode for a reason, and drop the calls that were not begun."""
        while not self._actions.empty():
            self._actions.get_nowait()
        self._actions.put_nowait(Truncated(reason))

    def conclude(self, record: Rollout | None) -> None:
        """Answer whoever still waits: the episode is over."""
        self._over = OVER
        if record is None or record.failure is not None:
            self._over = "error: the environment broke; this episode does not count"
        self._greeted.set()
        self._answer(record.messages if record else ())
        for reply in self._replies.values():
            if not reply.done():
                reply.set_result(Reply(self._over, is_error=True))
        self._replies.clear()

    def _answer(self, messages: tuple[Message, ...]) -> None:
        for message in messages:
            if message.role != "tool":
                continue
            reply = self._replies.pop(message.tool_call_id or "", None)
            if reply is not None and not reply.done():
                text = message.text
                reply.set_result(Reply(text, is_error=text.startswith(_ERROR)))
