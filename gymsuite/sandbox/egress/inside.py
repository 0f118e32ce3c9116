"""The inner end of a sandbox's way out: a port that leads to its proxy, and who is told of it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox.egress.dialing import Dialer
from gymsuite.sandbox.egress.log import Log
from gymsuite.sandbox.egress.policy import Policy
from gymsuite.sandbox.egress.proxy import open_proxy
from gymsuite.sandbox.forward import ForwardingSandbox
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.protocol import DEFAULT_FILE_BYTES, Changes, Process, Sandbox
from gymsuite.sandbox.scratch import Scratches, remove_tree
from gymsuite.types import SandboxSpec

SOCKET = "/dev/.egress"
PORT = 3128

_SERVER = "/dev/.exec"
_READY = b"ready\n"
_READY_SECONDS = 30.0
_URL = f"http://127.0.0.1:{PORT}"
_DIRECT = "localhost,127.0.0.1,::1"
_ENV = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _URL),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), _DIRECT),
}


@dataclass(frozen=True)
class WayOut:
    """What a sandbox is opened with, so that it can reach what its spec lists.

    `sockets` are paths of this machine, and where they are mounted inside.
    """

    spec: SandboxSpec
    sockets: tuple[tuple[Path, str], ...] = ()
    log: Log | None = None

    async def join(self, sandbox: Sandbox) -> Sandbox:
        """Let a sandbox use it. Raises `SandboxError`."""
        if self.log is None:
            return sandbox
        joined = NetworkedSandbox(sandbox, self.spec.network, self.log)
        await joined.connect()
        return joined


@asynccontextmanager
async def way_out(spec: SandboxSpec, dialer: Dialer, scratches: Scratches) -> AsyncIterator[WayOut]:
    """Open the proxy of one sandbox, or nothing where its spec lists nothing.

    Raises `DefinitionError` for an entry that is no host.
    """
    if not spec.network:
        yield WayOut(spec)
        return
    policy = Policy.parse(spec.network)
    try:
        directory = await asyncio.to_thread(scratches.fresh)
    except OSError as error:
        raise SandboxError(f"cannot make a socket for a sandbox: {error}") from error
    path = directory / "proxy"
    try:
        async with open_proxy(path, policy, budget_bytes=spec.network_bytes, dialer=dialer) as log:
            told = spec.model_copy(update={"env": {**_ENV, **spec.env}})
            yield WayOut(told, ((path, SOCKET),), log)
    finally:
        await asyncio.to_thread(remove_tree, directory)


class NetworkedSandbox:
    """A sandbox with a way out. What ends its processes ends the inner end, which comes back."""

    def __init__(self, sandbox: Sandbox, hosts: tuple[str, ...], log: Log) -> None:
        self._sandbox = sandbox
        self._hosts = hosts
        self._log = log
        self._turn = asyncio.Lock()
        self._forwarder: Process | None = None
        forward = ForwardingSandbox(self._connected, lambda: sandbox)
        self.exec = forward.exec
        self.spawn = forward.spawn
        self.read = sandbox.read
        self.write = sandbox.write
        self.upload = sandbox.upload
        self.download = sandbox.download
        self.stats = sandbox.stats

    @property
    def description(self) -> Mapping[str, object]:
        """See `Sandbox.description`; `egress` says what went out so far."""
        inner = dict(self._sandbox.description)
        limits = inner.get("limits")
        limits = dict(limits) if isinstance(limits, Mapping) else {}
        return {
            **inner,
            "limits": {**limits, "network": list(self._hosts)},
            "egress": self._log.summary(),
        }

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """See `Sandbox.changes`."""
        async with self._turn:
            self._forwarder = None
            return await self._sandbox.changes(root, max_bytes=max_bytes)

    async def snapshot(self) -> Image:
        """See `Sandbox.snapshot`."""
        async with self._turn:
            self._forwarder = None
            return await self._sandbox.snapshot()

    async def connect(self) -> None:
        """Start the inner end, if it does not run. Raises `SandboxError`."""
        async with self._turn:
            if self._forwarder is None:
                self._forwarder = await _start(self._sandbox)

    async def _connected(self) -> Sandbox:
        try:
            await self.connect()
        except SandboxDead:
            raise
        except SandboxError:
            # What was in the sandbox may have seen to it that nothing starts there any more: that
            # costs its agent the network, and nobody the episode.
            pass
        return self._sandbox


async def _start(sandbox: Sandbox) -> Process:
    process = await sandbox.spawn([_SERVER, "forward", str(PORT), SOCKET], cwd="/")
    try:
        async with asyncio.timeout(_READY_SECONDS):
            said = await process.read(len(_READY))
    except TimeoutError:
        said = b""
    if said != _READY:
        async with asyncio.timeout(_READY_SECONDS):
            await process.kill()
            complaint = await process.read_error(4096)
        raise SandboxError(
            f"the sandbox's way out does not start: {complaint.decode(errors='replace').strip()}"
        )
    return process
