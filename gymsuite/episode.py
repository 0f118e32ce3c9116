"""One live attempt at a task: `reset` and `step`, written once for all environments."""

import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from gymsuite import hooks
from gymsuite.deadline import Deadline
from gymsuite.environment import Environment
from gymsuite.errors import DeadlineError, DefinitionError, UsageError
from gymsuite.metering import Meter
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.lazy import lazy_sandbox
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.turns import Holder
from gymsuite.tools import Context
from gymsuite.types import (
    Action,
    Message,
    Observation,
    SandboxSpec,
    Score,
    Step,
    Submission,
    Task,
    Usage,
)


class Episode:
    """One attempt. Single use: reset once, step to the end, leave the block.

    `stage` names what it is doing, so that a failure can say where it happened. After the last
    step `submission`, `score` and `truncation` (which limit ended it, or "") are set.
    """

    def __init__(self, environment: Environment, open_sandbox: OpenSandbox) -> None:
        self.environment = environment
        self.stage = "reset"
        self.done = False
        self.submission: Submission | None = None
        self.score: Score | None = None
        self.truncation = ""
        self.sandbox_description: dict[str, object] = {}
        self._open_sandbox = open_sandbox
        self._stack = AsyncExitStack()
        self._context: Context | None = None
        self._image: Image | None = None
        self._sandbox = lazy_sandbox(self._open_prepared)
        self._steps = 0
        self._ends_at = 0.0
        self._holder = Holder()
        self._deadline: Deadline | None = None
        self._meter = Meter()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.done = True
        await self._close()

    @property
    def seconds_left(self) -> float:
        """What remains of `limits.episode_seconds`."""
        stopped = self._deadline.stopped_seconds if self._deadline else 0.0
        return self._ends_at + stopped - time.monotonic()

    @property
    def usage(self) -> Usage:
        """What the episode has cost so far, model calls excepted."""
        return self._meter.usage

    async def reset(self, task: Task, seed: int) -> tuple[Observation, dict[str, Any]]:
        """Begin, and return all messages so far with the tools.

        A pure function of (environment, task, seed). Raises `UsageError` on a second call.
        """
        if self._context is not None:
            raise UsageError("an episode is reset once; make a new one for another attempt")
        limits = self.environment.limits_of(task)
        self._ends_at = time.monotonic() + limits.episode_seconds
        self._context = Context(
            task=task,
            sandbox=self._sandbox,
            limits=limits,
            rng=random.Random(f"{self.environment.id}/{task.id}/{seed}"),
            seconds_left=lambda: self.seconds_left,
        )
        system = self.environment.system_prompt
        first = (Message(role="system", content=system),) if system else ()
        messages = (*first, Message(role="user", content=task.prompt))
        info = {"task": task.id, "seed": seed}
        return Observation(messages, self.environment.toolbox.schemas), info

    async def step(self, action: Action) -> Step:
        """Carry out the action; on the last step collect, close the sandbox and verify.

        Raises `UsageError` before reset or after the end, and `InfrastructureError` when the
        world broke: there is no reward then.
        """
        context = self._live_context()
        if not isinstance(action, Message):
            raise UsageError(f"an action is a Message of an assistant, not {action!r:.80}")
        if action.role != "assistant":
            raise UsageError(f"an action has the role 'assistant', not {action.role!r}")
        self._steps += 1
        self.stage = "step"
        messages, ended = await self._act(context, action)
        if ended:
            return await self._end(messages, action.text)
        if self.seconds_left <= 0:
            self.truncation = "episode_seconds"
        elif self._steps >= context.limits.max_steps:
            self.truncation = "max_steps"
        if self.truncation:
            return await self._end(messages, "")
        return Step(Observation(messages), 0.0, terminated=False, truncated=False, info={})

    async def truncate(self, reason: str) -> Step:
        """End the episode now, because a limit outside of it was reached, and score it."""
        self._live_context()
        self.truncation = reason
        return await self._end((), "")

    async def fork(self, count: int) -> tuple["Episode", ...]:
        """Give `count` episodes that go on from here, each on its own, as does this one.

        They share what the sandbox's file system and the environment's state are now, copied only
        where they differ later; right after `reset`, that is one preparation for a whole group.
        Processes are not copied: those in the sandbox end. Use each in
        `async with`; `usage` is what an episode spent itself. Raises `UsageError` before reset or
        after the end, and `InfrastructureError` where the sandbox cannot be frozen.
        """
        context = self._live_context()
        image = await self._frozen(context)
        return tuple(self._child(context, image) for _ in range(count))

    async def _frozen(self, context: Context) -> Image | None:
        """The sandbox's file system as an image, or what it was already opened from."""
        starts_empty = self.environment.prepare is None and not context.task.files
        if self._sandbox.opened is None and (self._image or starts_empty):
            return self._image
        seconds = context.limits.reset_seconds
        try:
            with self._holder.here():
                async with Deadline(seconds):
                    return await self._sandbox.snapshot()
        except TimeoutError as error:
            raise DeadlineError(f"freezing the sandbox took more than {seconds} s") from error

    def _child(self, context: Context, image: Image | None) -> "Episode":
        child = Episode(self.environment, self._open_sandbox)
        child._holder = self._holder
        child._image = image
        child._steps = self._steps
        child._ends_at = self._ends_at
        rng = random.Random()
        rng.setstate(context.rng.getstate())
        child._context = replace(
            context,
            sandbox=child._sandbox,
            rng=rng,
            seconds_left=lambda: child.seconds_left,
            state=hooks.fork(self.environment, context.state),
        )
        return child

    @asynccontextmanager
    async def on_the_clock(self) -> AsyncIterator[Deadline]:
        """Let the block take place in the episode's time, and open its sandboxes in its name.

        Raises TimeoutError when `limits.episode_seconds` are over; waits in a queue do not count.
        """
        deadline = Deadline(max(0.0, self.seconds_left))
        try:
            with self._holder.here():
                async with deadline:
                    self._deadline = deadline
                    yield deadline
        finally:
            self._deadline = None
            self._ends_at += deadline.stopped_seconds
            self._meter.queue_seconds += deadline.queue_seconds

    def _live_context(self) -> Context:
        if self._context is None:
            raise UsageError("reset the episode before stepping it")
        if self.done:
            raise UsageError("the episode is over; make a new one for another attempt")
        return self._context

    async def _act(self, context: Context, action: Action) -> tuple[tuple[Message, ...], bool]:
        """Run the tool calls, or let the environment respond to plain text."""
        messages: list[Message] = []
        try:
            async with self.on_the_clock() as deadline:
                if action.tool_calls:
                    for call in action.tool_calls:
                        reply = await self.environment.toolbox.call(call, context)
                        messages.append(reply)
                    return tuple(messages), context.submitted
                said = await hooks.respond(self.environment, context, action)
                return (said or (), said is None or context.submitted)
        except TimeoutError:
            messages += [
                Message(
                    role="tool", tool_call_id=call.id, content="error: the episode's time is up"
                )
                for call in action.tool_calls[len(messages) :]
            ]
            return tuple(messages), False
        finally:
            self._meter.tool_seconds += deadline.seconds

    async def _end(self, messages: tuple[Message, ...], text: str) -> Step:
        context = self._live_context()
        self.done = True
        with self._holder.here():
            self.stage = "collect"
            self.submission = await self._collect(context, text)
            self.stage = "verify"
            self.score = await self._verify(context.task, self.submission)
        info: dict[str, Any] = {"passed": self.score.passed, "metrics": dict(self.score.metrics)}
        if self.truncation:
            info["truncation"] = self.truncation
        truncated = bool(self.truncation)
        return Step(
            Observation(messages),
            self.score.reward,
            terminated=not truncated,
            truncated=truncated,
            info=info,
        )

    async def _verify(self, task: Task, submission: Submission) -> Score:
        watch = Deadline(None)
        open_metered = self._meter.verifiers(self._open_sandbox)
        try:
            async with watch:
                return await self.environment.verify(task, submission, open_metered)
        finally:
            self._meter.verify_seconds = watch.seconds
            self._meter.queue_seconds += watch.queue_seconds

    async def _collect(self, context: Context, text: str) -> Submission:
        """What the agent left, taken under a deadline; its sandbox is gone afterwards."""
        seconds = context.limits.reset_seconds
        deadline = Deadline(seconds)
        try:
            async with deadline:
                submission = await hooks.collect(self.environment, context.task, self._sandbox)
                left = await hooks.left(self.environment, context.state)
                submission = submission.model_copy(update={"state": {**submission.state, **left}})
                if self._sandbox.opened is not None:
                    self._meter.sandbox = await self._sandbox.stats()
        except TimeoutError as error:
            raise DeadlineError(f"collecting the submission took more than {seconds} s") from error
        finally:
            self._meter.queue_seconds += deadline.queue_seconds
            self.sandbox_description = dict(self._sandbox.description)
            await self._close()
        answer = submission.answer or context.answer or text
        return submission.model_copy(update={"answer": answer})

    async def _close(self) -> None:
        """Let go of the environment's state and of the sandbox."""
        for value in self._context.state.values() if self._context else ():
            self._stack.callback(hooks.close, self.environment, value)
        await self._stack.aclose()

    async def _open_prepared(self) -> Sandbox:
        context = self._context
        if context is None:
            raise UsageError("reset the episode before using its sandbox")
        task = context.task
        spec = self._spec(task)
        stage, self.stage = self.stage, "reset"
        # The agent does not pay for a slow start.
        agents_clock = self._deadline.stopped() if self._deadline else nullcontext()
        deadline = Deadline(context.limits.reset_seconds)
        try:
            with agents_clock:
                async with deadline:
                    sandbox = await self._opened(spec, task)
        except TimeoutError as error:
            raise DeadlineError(
                f"preparing the sandbox of task {task.id!r} took more than "
                f"{context.limits.reset_seconds} s"
            ) from error
        self._meter.reset_seconds += deadline.seconds
        self.stage = stage
        return sandbox

    async def _opened(self, spec: SandboxSpec, task: Task) -> Sandbox:
        sandbox = await self._stack.enter_async_context(self._open_sandbox(spec))
        self._stack.push_async_callback(self._meter.read, sandbox)
        if self._image is None:
            await hooks.prepare(self.environment, task, sandbox)
        return sandbox

    def _spec(self, task: Task) -> SandboxSpec:
        spec = task.sandbox or self.environment.sandbox
        if spec is None:
            raise DefinitionError(
                f"{self.environment.id}: something needs a sandbox, but neither the environment "
                f"nor task {task.id!r} names one; give `sandbox: {{image: ...}}`"
            )
        return spec.model_copy(update={"image": self._image.name}) if self._image else spec
