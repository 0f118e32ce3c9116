"""One keeper per process: started when it is needed, started anew when it was lost."""

import os
import threading
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.keeper import Keeper


class Keepers:
    """What gives this process its keeper. A process that is forked off gets one of its own."""

    def __init__(self, server: Path, uid: int, gid: int, cgroups: Cgroups) -> None:
        self._server = server
        self._ids = (uid, gid)
        self._cgroups = cgroups
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._keeper: Keeper | None = None
        self._closed = False

    def current(self) -> Keeper:
        """Return a keeper that lives. Raises `SandboxError`."""
        if self._owner != os.getpid():
            # The parent's keeper is not ours, and a thread of the parent may have held the lock.
            self._lock = threading.Lock()
            self._owner, self._keeper = os.getpid(), None
        with self._lock:
            if self._closed:
                raise SandboxError(
                    "the local provider was closed; open sandboxes within its block",
                    retryable=False,
                )
            if self._keeper is None or self._keeper.lost:
                self._end()
                groups = self._cgroups.names()
                self._keeper = Keeper.start(self._server, *self._ids, groups)
            return self._keeper

    def close(self) -> None:
        """End this process's keeper, with all its sandboxes, and start no other. Idempotent."""
        if self._owner == os.getpid():
            with self._lock:
                self._closed = True
                self._end()

    def _end(self) -> None:
        if self._keeper is not None:
            keeper, self._keeper = self._keeper, None
            keeper.close()
            # One that was killed has left its cgroups.
            self._cgroups.remove(keeper.groups)
