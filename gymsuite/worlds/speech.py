"""Plain text for a user who is a tool of the world: both ways of talking are the same."""

from collections.abc import Awaitable, Callable

from gymsuite.tools import Context, ToolError
from gymsuite.types import Action, Message
from gymsuite.worlds.server import OpenWorld, WorldTool
from gymsuite.worlds.text import MOST_CHARACTERS

Respond = Callable[[Context, Action], Awaitable[tuple[Message, ...] | None]]


def replies_of(listen: WorldTool, open_world: OpenWorld) -> Respond:
    """An environment's `respond` that hands plain text to a tool with one `text` argument."""

    async def respond(context: Context, action: Action) -> tuple[Message, ...] | None:
        server = await open_world(context)
        try:
            reply = await server.call(listen.__name__, {"text": _said(action.text)})
        except ToolError as error:
            return (Message(role="user", content=f"error: {error}"),)
        return None if reply.ended else (Message(role="user", content=reply.text),)

    return respond


def _said(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()[:MOST_CHARACTERS]
