"""The proxy of one sandbox: a server on a socket of its own, that ends with the sandbox."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.egress.apart import apart
from gymsuite.sandbox.egress.dialing import Dialer
from gymsuite.sandbox.egress.log import ALLOWED, UNLISTED, BudgetSpentError, Entry, Log
from gymsuite.sandbox.egress.policy import Policy
from gymsuite.sandbox.egress.relay import CHUNK_BYTES, MOST_PIECES, Relay, discard
from gymsuite.sandbox.egress.request import Refusal, Request, end_of_head, parse_request
from gymsuite.sandbox.sockets import bind

_MOST_CONNECTIONS = 64
_HEAD_SECONDS = 10.0
_REFUSED_SECONDS = 0.25
_LINGER_SECONDS = 2.0
_MOST_DIALS = 8
_PASS_RIGHTS = 83
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@asynccontextmanager
async def open_proxy(
    path: Path, policy: Policy, *, budget_bytes: int, dialer: Dialer
) -> AsyncIterator[Log]:
    """Listen at `path` as long as the block lasts; the log says what came through.

    Raises `SandboxError` where this machine has nothing left for it.
    """
    log = Log(budget_bytes)

    async def serve(listener: socket.socket) -> None:
        await _Proxy(policy, dialer, log).serve(listener)

    async with AsyncExitStack() as stack:
        stack.callback(path.unlink, missing_ok=True)
        try:
            # To read what a client sent is to close the descriptors that it sent along, and that
            # may take as long as it likes: there are sockets that linger.
            await stack.enter_async_context(apart(_listen(path), serve))
        except (OSError, RuntimeError) as error:
            raise SandboxError(f"cannot listen for a sandbox at {path}: {error}") from error
        yield log


def _listen(path: Path) -> socket.socket:
    with ExitStack() as unused:
        listener = unused.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.setblocking(False)
        bind(listener, path)
        # Whoever the sandbox runs as may connect; who else may is up to the directory.
        path.chmod(0o666)
        with suppress(OSError):  # Linux before 6.16 lets clients send descriptors
            listener.setsockopt(socket.SOL_SOCKET, _PASS_RIGHTS, 0)
        listener.listen(_MOST_CONNECTIONS)
        unused.pop_all()
    return listener


class _Proxy:
    def __init__(self, policy: Policy, dialer: Dialer, log: Log) -> None:
        self._policy = policy
        self._dialer = dialer
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._dials = asyncio.Semaphore(_MOST_DIALS)

    async def serve(self, listener: socket.socket) -> None:
        """Take so many clients at once; those beyond wait in the kernel, and cost nothing here."""
        free = asyncio.Semaphore(_MOST_CONNECTIONS)
        clients: set[asyncio.Task[None]] = set()
        try:
            while True:
                await free.acquire()
                try:
                    client, _ = await self._loop.sock_accept(listener)
                except OSError:  # out of descriptors: someone else's fault, and it may pass
                    free.release()
                    await asyncio.sleep(_REFUSED_SECONDS)
                    continue
                task = asyncio.create_task(self._client(client))
                clients.add(task)
                task.add_done_callback(clients.discard)
                task.add_done_callback(partial(_over, client, free))
        finally:
            for task in clients:
                task.cancel()
            if clients:
                await asyncio.wait(clients)

    async def _client(self, client: socket.socket) -> None:
        entry, refused = self._log.begin(), None
        entry.verdict = "ended"
        client.setblocking(False)
        try:
            await self._serve(client, entry)
            entry.verdict = ALLOWED
        except Refusal as refusal:
            entry.verdict, refused = refusal.verdict, refusal
        except BudgetSpentError:
            entry.verdict = "budget"
        except TimeoutError:
            entry.verdict = "idle"
        except OSError:
            entry.verdict = "lost"
        finally:
            self._log.end(entry)
        if refused is not None:
            await self._refuse(client, refused)

    async def _serve(self, client: socket.socket, entry: Entry) -> None:
        request, early = await self._request(client)
        entry.method, entry.endpoint = request.method, request.endpoint
        self._check(request)
        self._log.name(entry, request.endpoint.host)
        async with self._dials:
            connected = await self._dialer.dial(request.endpoint)
        with closing(connected) as server:
            if request.is_tunnel:
                await self._loop.sock_sendall(client, _ESTABLISHED)
            await Relay(client, server, self._log, entry).run(request, early)

    async def _request(self, client: socket.socket) -> tuple[Request, bytes]:
        data, pieces = b"", 0
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                while (end := end_of_head(data)) is None:
                    pieces += 1
                    more = await self._loop.sock_recv(client, CHUNK_BYTES)
                    if not more or pieces > MOST_PIECES:
                        raise Refusal("400 Bad Request", "request", "the request is not complete")
                    data += more
        except TimeoutError as error:
            raise Refusal("408 Request Timeout", "request", "the request is too slow") from error
        return parse_request(data[:end]), data[end:]

    def _check(self, request: Request) -> None:
        if not self._policy.allows(request.endpoint):
            raise Refusal(
                "403 Forbidden",
                UNLISTED,
                f"{request.endpoint} is not among the hosts that this sandbox may reach",
            )
        if not self._log.left_bytes:
            raise Refusal(
                "403 Forbidden", "budget", "this sandbox has sent and received all that it may"
            )

    async def _refuse(self, client: socket.socket, refusal: Refusal) -> None:
        """Say why, and take one's time: whoever asks again and again is to cost little."""
        text = f"{refusal}\n".encode(errors="replace")
        head = (
            f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        await asyncio.sleep(_REFUSED_SECONDS)
        with suppress(OSError):
            async with asyncio.timeout(_LINGER_SECONDS):
                if refusal.status:
                    await self._loop.sock_sendall(client, head.encode() + text)
                client.shutdown(socket.SHUT_WR)
                await discard(client)


def _over(client: socket.socket, free: asyncio.Semaphore, _: "asyncio.Task[None]") -> None:
    client.close()
    free.release()
