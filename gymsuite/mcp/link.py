"""A connection to one foreign server: a task of its own holds it, and any task may call."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from mcp import ClientSession, MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, PaginatedRequestParams
from mcp_types import Tool as ForeignTool

from gymsuite.errors import DeadlineError, GymsuiteError, InfrastructureError
from gymsuite.mcp.content import text_of
from gymsuite.mcp.lines import Streams
from gymsuite.mcp.requests import Result

_PING_SECONDS = 5.0
_MOST_PAGES = 100

T = TypeVar("T")


class Link:
    """Opens at once; `close` ends it, and what was started for it."""

    def __init__(self, name: str, streams: AbstractAsyncContextManager[Streams]) -> None:
        self._name = name
        self._ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._owner = asyncio.create_task(self._own(streams))

    async def connected(self, seconds: float) -> None:
        """Wait until it is open; raises `InfrastructureError` where it does not open in time."""
        await self._session(seconds)

    async def tools(self, seconds: float) -> tuple[ForeignTool, ...]:
        """All tools that the server lists; raises `InfrastructureError` where it does not say."""
        session = await self._session(seconds)
        found: list[ForeignTool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            try:
                page = await self._asked(session.list_tools(params=_page(cursor)), seconds)
            except TimeoutError as error:
                raise DeadlineError(
                    f"MCP server {self._name!r} did not list its tools within {seconds:g} seconds"
                ) from error
            except MCPError as error:
                raise self._broken(f"it lists no tools: {error.message}") from error
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        return tuple(found)

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Result:
        """Call a tool.

        What the server says is wrong is a result, and so is a call that takes too long, if the
        server lives. Raises `InfrastructureError` where it is gone or breaks the protocol.
        """
        session = await self._session(seconds)
        try:
            result = await self._asked(session.call_tool(tool, dict(arguments)), seconds)
        except TimeoutError:
            await self._ping(session)
            return Result(text=f"no reply within {seconds:g} seconds", is_error=True)
        except MCPError as error:
            return Result(text=error.message, is_error=True)
        if not isinstance(result, CallToolResult):
            raise self._broken("it asks for more input, which nobody here can give")
        return Result(text=text_of(result), is_error=result.is_error)

    def close(self) -> None:
        """End it soon; may be called again."""
        self._closing.set()
        if not self._ready.done():  # it waits for a greeting that may never come
            self._owner.cancel()

    async def closed(self) -> None:
        """End it, and wait until it is gone."""
        self.close()
        await asyncio.wait((self._owner,))

    async def _own(self, streams: AbstractAsyncContextManager[Streams]) -> None:
        """Hold transport and session: both have to be left by the task that entered them."""
        try:
            async with (
                streams as (incoming, outgoing),
                ClientSession(incoming, outgoing) as session,
            ):
                await session.initialize()
                self._ready.set_result(session)
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - transports raise what they like, in groups
            cause = _cause(error)
            self._fail(cause if isinstance(cause, GymsuiteError) else self._broken(repr(cause)))
        finally:
            self._fail(self._broken("it was closed"))

    def _fail(self, error: GymsuiteError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # it may be that nobody asks

    async def _session(self, seconds: float) -> ClientSession:
        try:
            async with asyncio.timeout(seconds):
                session = await asyncio.shield(self._ready)
        except TimeoutError as error:
            self.close()
            raise DeadlineError(
                f"MCP server {self._name!r} did not come up within {seconds:g} seconds"
            ) from error
        if self._owner.done():
            raise self._broken("it is gone")
        return session

    async def _asked(self, asking: Coroutine[Any, Any, T], seconds: float) -> T:
        """What the server answers, unless it is lost first. Raises `TimeoutError`, `MCPError`."""
        request = asyncio.ensure_future(asking)
        try:
            await asyncio.wait(
                (request, self._owner), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if request.done():
                return request.result()
            if self._owner.done():
                raise self._broken("it is gone")
            raise TimeoutError
        except MCPError as error:
            if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                raise self._broken(error.message) from error
            raise
        except (RuntimeError, ValueError) as error:
            raise self._broken(str(error)) from error
        finally:
            request.cancel()

    async def _ping(self, session: ClientSession) -> None:
        try:
            await self._asked(session.send_ping(), _PING_SECONDS)
        except (TimeoutError, MCPError) as error:
            raise DeadlineError(f"MCP server {self._name!r} fell silent") from error

    def _broken(self, why: str) -> InfrastructureError:
        return InfrastructureError(f"MCP server {self._name!r} broke: {why[:500]}")


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _page(cursor: str | None) -> PaginatedRequestParams | None:
    return PaginatedRequestParams(cursor=cursor) if cursor else None
