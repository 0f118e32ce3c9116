"""Synchronous seats at episodes, for trainers that make instances once and reset them often.

A failure of the world never leaves a seat as an exception or a reward: it is logged, and the
episode's reward is None.
"""

import logging
import os
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from gymsuite.environment import Environment
from gymsuite.episode import Episode
from gymsuite.errors import DefinitionError, GymsuiteError, InfrastructureError, UsageError
from gymsuite.portal import LazyProvider, Portal
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Message, Task, ToolCall

_OVER = "error: the episode is over; this call was not run"
_BROKEN = "error: the environment broke; the episode is over"
_HOPELESS = 64

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Host:
    """What all seats at one environment share: the loop's thread, the provider, the tasks."""

    def __init__(
        self, environment: Environment, open_sandbox: OpenSandbox, provider: LazyProvider | None
    ) -> None:
        self.environment = environment
        self._open_sandbox = open_sandbox
        self._provider = provider
        self._episodes: set[Episode] = set()
        self._endings: set[Future[None]] = set()
        self._portal: Portal | None = None
        self._failures = 0
        self._owner = os.getpid()

    @property
    def portal(self) -> Portal:
        """The way to the loop, made when it is first used."""
        if self._portal is None:
            self._portal = Portal()
        return self._portal

    def open(self) -> Episode:
        """A new episode, which ends with the host at the latest."""
        episode = Episode(self.environment, self._open_sandbox)
        self._episodes.add(episode)
        return episode

    async def end(self, episode: Episode) -> None:
        """Remove all that the episode holds; what breaks in that is logged."""
        self._episodes.discard(episode)
        try:
            await episode.__aexit__(None, None, None)
        except (InfrastructureError, DefinitionError) as error:
            _log.warning("an episode could not be closed: %s", error)

    def abandon(self, episode: Episode) -> None:
        """End the episode without waiting, from whatever thread; `close` waits."""
        # Closed already, and all episodes with it; or a fork, which has none of the threads.
        if self._portal is None or self._owner != os.getpid():
            return
        ending = self._portal.send(self.end(episode))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def count(self, *, failed: bool) -> None:
        """Take note of how a rollout ended."""
        self._failures = self._failures + 1 if failed else 0

    def give_up_if_hopeless(self, failure: GymsuiteError) -> None:
        """Raise after many failures in a row: nothing is learned on a broken machine."""
        if self._failures >= _HOPELESS:
            raise InfrastructureError(
                f"{self.environment.id}: the last {self._failures} rollouts failed without a "
                f"score in between, this one with: {failure}"
            ) from failure

    def close(self) -> None:
        """End all episodes, the provider and the thread; in a fork of their process, nothing."""
        if self._portal is None or self._owner != os.getpid():
            return
        if threading.current_thread() is threading.main_thread():
            self._close(self._portal)
        else:  # the collector runs in any thread, also in the one that would be waited for
            threading.Thread(target=self._close, args=(self._portal,)).start()
        self._portal = None

    def _close(self, portal: Portal) -> None:
        wait(tuple(self._endings))
        portal.call(self._end_all())
        portal.close()

    async def _end_all(self) -> None:
        for episode in tuple(self._episodes):
            await self.end(episode)
        if self._provider is not None:
            await self._provider.aclose()


class Seat:
    """A place at one episode after another: the one being played, or what became of the last."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._episode: Episode | None = None
        self._reward: float | None = None
        self._failure: InfrastructureError | DefinitionError | None = None
        self._misuse: UsageError | None = None
        self._calls = 0

    def begin(self, task: Task, seed: int) -> None:
        """Start an episode, in place of what is left of the last one."""
        self._end()
        self._reward = self._failure = self._misuse = None
        self._episode = self._host.open()
        self._run(self._episode, self._episode.reset(task, seed))

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run one tool. A `UsageError` is raised again by `reward`: trainers swallow a tool's."""
        episode = self._episode
        if episode is None:
            return _OVER
        self._calls += 1
        call = ToolCall(id=f"call_{self._calls}", name=name, arguments=arguments)
        action = Message(role="assistant", tool_calls=(call,))
        try:
            step = self._run(episode, episode.step(action))
        except UsageError as error:
            self._misuse = error
            raise
        if step is None:
            return _BROKEN
        return "\n".join(message.text for message in step.observation.messages)

    def reward(self) -> float | None:
        """End the episode if it has not ended, and give its reward; None for a failure."""
        if self._misuse is not None:
            raise self._misuse
        if self._episode is not None:
            self._run(self._episode, self._episode.truncate("the trainer ended it"))
        if self._failure is not None:
            self._host.give_up_if_hopeless(self._failure)
        elif self._reward is None:
            raise UsageError("reset the environment before asking for its reward")
        return self._reward

    def leave(self) -> None:
        """Give the episode up: what sat here is being collected."""
        if self._episode is not None:
            self._host.abandon(self._episode)

    def _run(self, episode: Episode, work: Coroutine[Any, Any, T]) -> T | None:
        """Wait for the work; None if the world or the definition broke in it."""
        try:
            result = self._host.portal.call(work)
        except (InfrastructureError, DefinitionError) as error:
            _log.warning("a rollout failed in %s: %s", episode.stage, error)
            self._failure = error
            self._host.count(failed=True)
            self._end()
            return None
        if episode.score is not None:
            self._reward = episode.score.reward
            self._host.count(failed=False)
            self._end()
        return result

    def _end(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            self._host.portal.call(self._host.end(episode))
