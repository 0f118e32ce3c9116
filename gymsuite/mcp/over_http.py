"""Episodes over streamable HTTP: one MCP session each, whose id is the episode's.

A session opened at `/mcp` gets the next task in turn; one opened at `/mcp/EPISODE` gets the episode
that the control channel began under that id.
"""

import asyncio
import hmac
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gymsuite import __version__
from gymsuite.errors import UsageError
from gymsuite.mcp.desk import Desk, FullError, Sitting
from gymsuite.mcp.offering import server_of

PATH = "/mcp"
MOST_BODY_BYTES = 4 << 20
_LINGER_SECONDS = 60.0
_BAD_REQUEST = 400
_VERSION = "mcp-protocol-version"
_LOOPBACK = TransportSecuritySettings(
    allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
)
_ANYWHERE = TransportSecuritySettings(enable_dns_rebinding_protection=False)


class Sessions:
    """An ASGI application. With a token every request needs `Authorization: Bearer TOKEN`."""

    def __init__(self, desk: Desk, token: str = "") -> None:
        self._desk = desk
        self._token = token
        self._transports: dict[str, StreamableHTTPServerTransport] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._app: ASGIApp = RequestBodyLimitMiddleware(self._answer, MOST_BODY_BYTES)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for transport in list(self._transports.values()):
            await transport.terminate()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        session = headers.get(MCP_SESSION_ID_HEADER)
        if session is None:
            await self._open(scope, receive, send)
        elif transport := self._transports.get(session):
            await transport.handle_request(scope, receive, send)
        else:
            await _says(404, "no such session; it ended, or never was")(scope, receive, send)

    def _refusal(self, headers: Mapping[str, str]) -> Response | None:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            return _says(401, "give the server's token as `Authorization: Bearer TOKEN`")
        version = headers.get(_VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            # An episode is a session, which versions without a handshake do not have.
            data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version}
            return _says(
                _BAD_REQUEST,
                f"protocol version {version!r} has no sessions",
                code=UNSUPPORTED_PROTOCOL_VERSION,
                data=data,
            )
        return None

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request open a session; if it is refused there is none, and no episode."""
        name = scope["path"].removeprefix(PATH).strip("/")
        try:
            sitting = self._sitting(name)
        except FullError as error:
            await _says(503, str(error))(scope, receive, send)
            return
        except UsageError as error:
            await _says(404, str(error))(scope, receive, send)
            return
        transport = StreamableHTTPServerTransport(
            sitting.id,
            security_settings=_ANYWHERE if self._token else _LOOPBACK,
            idle_timeout=self._desk.offer.idle_seconds,
        )
        self._transports[sitting.id] = transport
        connected, opened = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(self._serve(sitting, transport, connected, opened))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        await connected.wait()

        async def watched(message: Message) -> None:
            if message.get("status", _BAD_REQUEST) < _BAD_REQUEST:
                opened.set()
            await send(message)

        try:
            await transport.handle_request(scope, receive, watched)
        finally:
            if not opened.is_set():
                self._forget(sitting, transport)
                await transport.terminate()
                if not name:
                    await self._desk.withdraw(sitting)

    def _forget(self, sitting: Sitting, transport: StreamableHTTPServerTransport) -> None:
        if self._transports.get(sitting.id) is transport:
            del self._transports[sitting.id]

    def _sitting(self, name: str) -> Sitting:
        if not name:
            return self._desk.begin()
        sitting = self._desk.find(name)
        if sitting is None or sitting.over.is_set() or name in self._transports:
            raise UsageError(f"no episode {name[:64]!r} waits for a session")
        return sitting

    async def _serve(
        self,
        sitting: Sitting,
        transport: StreamableHTTPServerTransport,
        connected: asyncio.Event,
        opened: asyncio.Event,
    ) -> None:
        """Own a session from its first request until it is closed, idle, or long over.

        With one that was never opened no episode ends: it waits for another.
        """
        lingering = asyncio.create_task(_linger(sitting, transport))
        tools = self._desk.offer.environment.toolbox.schemas
        try:
            server = await server_of(sitting, tools, __version__)
            async with transport.connect() as streams:
                connected.set()
                scope = transport.idle_scope
                if scope is None:
                    raise UsageError("a session needs an idle timeout")
                with scope:
                    await server.run(*streams, server.create_initialization_options())
            await transport.terminate()
        finally:
            connected.set()
            lingering.cancel()
            self._forget(sitting, transport)
            if opened.is_set():
                sitting.visitor.leave("session_closed")


async def _linger(sitting: Sitting, transport: StreamableHTTPServerTransport) -> None:
    """Close a session some time after its episode ended, so that a client can see that it did."""
    await sitting.over.wait()
    await asyncio.sleep(_LINGER_SECONDS)
    await transport.terminate()


def _says(status: int, text: str, *, code: int = -32600, data: object = None) -> Response:
    error: dict[str, Any] = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status)
