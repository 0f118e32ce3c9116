"""Reset and reward, on a port and behind a token of their own: the agent's sessions have neither.

POST   /episodes        {"task"?: id, "seed"?: n} -> the episode, with its messages and tools
GET    /episodes        -> all of them
GET    /episodes/ID     -> one, with its score or failure once it has ended
POST   /episodes/ID/end {"answer"?: text} -> the same, after it was ended and scored
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gymsuite.complaints import complaints
from gymsuite.errors import UsageError
from gymsuite.mcp.desk import Desk, FullError, Sitting
from gymsuite.types import Model

MOST_BODY_BYTES = 1 << 20
_Handler = Callable[[Request], Awaitable[Mapping[str, Any]]]


class Begin(Model):
    """Which task to begin, and with which seed; what is not given comes in turn."""

    task: str | None = None
    seed: int | None = None


class End(Model):
    """What the agent said at last: an answer in plain text, or nothing."""

    answer: str | None = None


class _Refused(Exception):  # noqa: N818 - a reply rather than an error
    """Why not, and the status that says so."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def control_app(desk: Desk, token: str) -> Starlette:
    """The control channel of a desk. Raises `UsageError` for an empty token."""
    if not token:
        raise UsageError("a control channel needs a token, so that no agent can use it")

    async def begin(request: Request) -> Mapping[str, Any]:
        asked = await _body(request, Begin)
        sitting = desk.begin(asked.task, asked.seed)
        greeting = await sitting.visitor.greeting()
        said = greeting.messages if greeting else ()
        messages = [message.model_dump(mode="json") for message in said]
        tools = [tool.model_dump(mode="json") for tool in desk.offer.environment.toolbox.schemas]
        return {**_shown(sitting), "messages": messages, "tools": tools}

    async def everything(_: Request) -> Mapping[str, Any]:
        return {"episodes": [_shown(sitting) for sitting in desk.sittings]}

    async def one(request: Request) -> Mapping[str, Any]:
        return _shown(_found(desk, request))

    async def end(request: Request) -> Mapping[str, Any]:
        sitting = _found(desk, request)
        asked = await _body(request, End)
        if sitting.record is None and asked.answer is not None:
            sitting.visitor.say(asked.answer)
        elif sitting.record is None:
            sitting.visitor.leave("ended")
        await sitting.over.wait()
        return _shown(sitting)

    def guarded(handle: _Handler) -> Callable[[Request], Awaitable[Response]]:
        return _guarded(handle, token)

    return Starlette(
        routes=[
            Route("/episodes", guarded(begin), methods=["POST"]),
            Route("/episodes", guarded(everything), methods=["GET"]),
            Route("/episodes/{episode}", guarded(one), methods=["GET"]),
            Route("/episodes/{episode}/end", guarded(end), methods=["POST"]),
        ]
    )


def _guarded(handle: _Handler, token: str) -> Callable[[Request], Awaitable[Response]]:
    """Let only who has the token ask, and say what is wrong instead of a traceback."""

    async def endpoint(request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            return JSONResponse({"error": "give the control channel's token"}, 401)
        try:
            return JSONResponse(await handle(request))
        except _Refused as refusal:
            return JSONResponse({"error": str(refusal)}, refusal.status)
        except FullError as error:
            return JSONResponse({"error": str(error)}, 503)
        except UsageError as error:
            return JSONResponse({"error": str(error)}, 404)

    return endpoint


def _shown(sitting: Sitting) -> dict[str, Any]:
    record = sitting.record
    shown: dict[str, Any] = {
        "episode": sitting.id,
        "task": sitting.task.id,
        "seed": sitting.seed,
        "calls": sitting.visitor.calls,
        "over": sitting.over.is_set(),
    }
    if record is not None:
        shown["score"] = record.score.model_dump(mode="json") if record.score else None
        shown["failure"] = record.failure.model_dump(mode="json") if record.failure else None
        shown["truncation"] = record.truncation
    return shown


def _found(desk: Desk, request: Request) -> Sitting:
    name = request.path_params["episode"]
    sitting = desk.find(name)
    if sitting is None:
        raise _Refused(404, f"no episode {name[:64]!r}")
    return sitting


async def _body(request: Request, kind: type[Any]) -> Any:  # noqa: ANN401 - an instance of `kind`
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BODY_BYTES:
            raise _Refused(413, f"the request is larger than {MOST_BODY_BYTES} bytes")
    try:
        return kind.model_validate_json(bytes(data) or b"{}")
    except ValidationError as error:
        raise _Refused(422, complaints(error, "body")) from error
