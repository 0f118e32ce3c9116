"""A client of any OpenAI-compatible chat-completions endpoint: the only door to httpx.

It never reads the environment: the caller gives it the key, which is neither shown nor stored.
"""

import asyncio
import base64
import importlib
import importlib.util
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
from pydantic import Field, field_serializer, field_validator
from pydantic_core import to_json

from gymsuite.errors import ModelError, Truncated
from gymsuite.retries import (
    Problem,
    delay_seconds,
    not_connected,
    refused,
    retry_after_seconds,
    unreadable,
)
from gymsuite.types import Message, Model, ToolSchema
from gymsuite.wire import decode_completion, decode_error, encode_message, encode_tools

_CONNECT_SECONDS = 20.0
_LARGEST_RESPONSE_BYTES = 64 << 20
_SHORTEST_SECRET = 6
_CONNECTIONS = httpx.Limits(
    max_connections=4096, max_keepalive_connections=4096, keepalive_expiry=60
)


class ChatSettings(Model):
    """Which model to ask, and how. Credentials in `base_url` are used, never shown or stored.

    `body` is added to every request as it is. `reasoning_field` names the field in which earlier
    reasoning is sent back ("" sends none: servers disagree whether they want it).
    `timeout_seconds` bounds one completion with all its retries.
    """

    base_url: str = Field(repr=False)
    model: str = Field(min_length=1)
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    body: Mapping[str, Any] = {}
    reasoning_field: str = ""
    timeout_seconds: float = Field(default=600, gt=0)
    max_retries: int = Field(default=8, ge=0)

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, base_url: str) -> str:
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in {"http", "https"} or not url.host:
            message = "must be a full address, such as http://localhost:8000/v1"
            raise ValueError(message)
        return base_url.rstrip("/").removesuffix("/chat/completions")

    @field_serializer("base_url")
    def _serialize_base_url(self, _: str) -> str:
        return self.public_url

    @property
    def public_url(self) -> str:
        """The base URL without credentials and without its query."""
        url = httpx.URL(self.base_url)
        return str(url.copy_with(username=None, password=None, query=None))


@asynccontextmanager
async def open_chat(
    settings: ChatSettings, api_key: str | None = None
) -> AsyncIterator["ChatClient"]:
    """Open a client, to be shared by everything that asks this model, and close it in the end."""
    door = _door()
    async with httpx.AsyncClient(
        headers=_headers(settings, api_key),
        timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
        limits=_CONNECTIONS,
        transport=door.transport,
        trust_env=False,
    ) as http:
        yield ChatClient(settings, http, door, _secrets(settings, api_key))


class _Door(NamedTuple):
    """A transport (None is httpx's own), what it raises, and what of that means "nobody there"."""

    transport: httpx.AsyncBaseTransport | None
    errors: tuple[type[Exception], ...]
    not_connected: tuple[type[Exception], ...]


def _door() -> _Door:
    """Where aiohttp is installed its transport: plain httpx costs several times its CPU time."""
    if importlib.util.find_spec("httpx_aiohttp") is None:
        return _Door(None, (httpx.HTTPError, OSError), (httpx.ConnectError,))
    aiohttp = importlib.import_module("aiohttp")
    # The transport lets some of aiohttp's own errors through (a malformed status line, say), and
    # reports a refused connection as a timeout.
    return _Door(
        importlib.import_module("httpx_aiohttp").AiohttpTransport(limits=_CONNECTIONS),
        (httpx.HTTPError, aiohttp.ClientError, OSError),
        (httpx.ConnectError, aiohttp.ClientConnectorError),
    )


def _headers(settings: ChatSettings, api_key: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    user = httpx.URL(settings.base_url).userinfo
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    elif user:
        headers["authorization"] = f"Basic {base64.b64encode(user).decode()}"
    return headers


def _secrets(settings: ChatSettings, api_key: str | None) -> tuple[str, ...]:
    url = httpx.URL(settings.base_url)
    found = (api_key or "", url.password, *url.params.values())
    return tuple(secret for secret in found if len(secret) >= _SHORTEST_SECRET)


class ChatClient:
    """Asks one model. Made by `open_chat`; safe to share among tasks of one event loop."""

    def __init__(
        self,
        settings: ChatSettings,
        http: httpx.AsyncClient,
        door: _Door,
        secrets: tuple[str, ...],
    ) -> None:
        url = httpx.URL(settings.base_url)
        self.settings = settings
        self._http = http
        self._door = door
        self._secrets = secrets
        self._url = url.copy_with(
            username=None, password=None, path=f"{url.path.rstrip('/')}/chat/completions"
        )

    def __repr__(self) -> str:
        return f"ChatClient({self.settings.model!r} at {self.settings.public_url})"

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()
    ) -> Message:
        """Return the model's next message.

        Raises `ModelError` when there is none by the deadline, and `Truncated` when the
        conversation no longer fits into the model's context.
        """
        content = self._encode(messages, tools)
        seconds = self.settings.timeout_seconds
        problem = Problem("the server did not answer")
        try:
            async with asyncio.timeout(seconds) as deadline:
                for attempt in itertools.count():
                    answer = await self._ask(content)
                    if isinstance(answer, Message):
                        return answer
                    problem = answer
                    delay = delay_seconds(attempt, problem)
                    late = asyncio.get_running_loop().time() + delay >= (deadline.when() or 0)
                    if late or attempt >= min(problem.retries, self.settings.max_retries):
                        break
                    await asyncio.sleep(delay)
        except TimeoutError as error:
            raise ModelError(
                self._public(f"no answer within {seconds:g} s; at last: {problem.text}")
            ) from error
        raise ModelError(self._public(problem.text), retryable=problem.retryable)

    def _encode(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> bytes:
        settings = self.settings
        field = settings.reasoning_field
        options = {
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "seed": settings.seed,
            "tools": encode_tools(tools) or None,
        }
        return to_json(
            {
                "model": settings.model,
                "messages": [encode_message(m, reasoning_field=field) for m in messages],
                **{name: value for name, value in options.items() if value is not None},
                **settings.body,
            }
        )

    async def _ask(self, content: bytes) -> Message | Problem:
        try:
            async with self._http.stream("POST", self._url, content=content) as response:
                data = await _read(response)
        except self._door.errors as error:
            return self._unreachable(error)
        if data is None:
            return Problem(f"the response is larger than {_LARGEST_RESPONSE_BYTES} bytes", 0)
        if response.status_code != httpx.codes.OK:
            after = retry_after_seconds(response.headers.get("retry-after", ""))
            return refused(response.status_code, decode_error(data), after)
        try:
            message = decode_completion(data)
        except ValueError:
            return unreadable(data)
        if message.extra["finish_reason"] == "length" and not (message.text or message.tool_calls):
            reason = "the model used up its tokens before it said anything"
            raise Truncated(reason, action=message)
        return message

    def _unreachable(self, error: Exception) -> Problem:
        reason = str(error) or type(error).__name__
        if isinstance(error, self._door.not_connected) or isinstance(
            error.__cause__, self._door.not_connected
        ):
            return not_connected(reason)
        return Problem(f"the connection broke ({reason})")

    def _public(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return f"{self.settings.model} at {self.settings.public_url}: {text}"


async def _read(response: httpx.Response) -> bytes | None:
    """Read the body, or None if it is too large; compressed ones are counted as they unfold."""
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > _LARGEST_RESPONSE_BYTES:
            return None
    return bytes(data)
