"""A second look that is begun beside the first, where a processor would have nothing to do.

Both start from fresh sandboxes and see nothing of each other, so what they find does not depend on
their order. One that turns out not to be wanted is called off.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from gymsuite.verify.judging import Verdict

Look = Callable[[], Coroutine[None, None, Verdict]]


@dataclass
class Processors:
    """How many patches are being judged at once, for so many processors."""

    count: int = field(default_factory=lambda: os.cpu_count() or 1)
    _busy: int = 0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count one as busy during the block."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    @property
    def idle(self) -> bool:
        """Whether one of them has nothing to do."""
        return self._busy < self.count


class Second:
    """A look that may be begun before it is wanted; what is still going on ends with the block."""

    def __init__(self, processors: Processors) -> None:
        self._processors = processors
        self._task: asyncio.Task[Verdict] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            # What goes wrong with a look that nobody asked for is nobody's trouble.
            await asyncio.gather(self._task, return_exceptions=True)

    def begin(self, look: Look) -> None:
        """Begin now, if a processor has nothing to do."""
        if self._processors.idle:
            self._task = asyncio.create_task(self._counted(look))

    async def result(self, look: Look) -> Verdict:
        """What it finds, whether it was begun or not."""
        return await (look() if self._task is None else self._task)

    async def _counted(self, look: Look) -> Verdict:
        with self._processors.busy():
            return await look()
