"""The same desk for agents that speak in tags: <search>, <open>, <answer> and <cite>.

An action is read by itself and nothing before it is: a document that holds an answer tag, or a
prompt with an example of one, cannot end an episode.
"""

import re

from gymsuite.environment import Respond
from gymsuite.search.desk import Desk, Shelf, Withheld, desk_of
from gymsuite.search.tools import nothing_withheld, show_hits, show_page
from gymsuite.tools import Context, ToolError
from gymsuite.types import Action, Message

RESULTS = 3
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_ACT = re.compile(r"<(search|open|answer)>(.*?)</\1>", re.DOTALL)
_CITED = re.compile(r"<cite>(.*?)</cite>", re.DOTALL)
_HINT = (
    "That was no action. Call a tool, or write <search>words</search> to search, <open>id</open> "
    "to open a document, or <answer>answer</answer> with <cite>id</cite> for every document that "
    "proves it."
)


def text_protocol(library: Shelf, *, withheld: Withheld = nothing_withheld) -> Respond:
    """An environment's `respond` over one library; the first complete tag of an action counts."""

    async def respond(context: Context, action: Action) -> tuple[Message, ...] | None:
        text = _THOUGHT.sub("", action.text)
        act = _ACT.search(text)
        if act is None:
            return (Message(role="user", content=_HINT),)
        desk = await desk_of(context, library, withheld)
        try:
            reply = await _carry_out(desk, act[1], act[2].strip(), _CITED.findall(text))
        except ToolError as error:
            reply = f"error: {error}"
        if reply is None:
            context.answer, context.submitted = act[2].strip(), True
            return None
        return (Message(role="user", content=f"<information>\n{reply}\n</information>"),)

    return respond


async def _carry_out(desk: Desk, verb: str, said: str, cited: list[str]) -> str | None:
    """What the desk replies, or None for an answer."""
    if verb == "search":
        return show_hits(await desk.search(said, RESULTS), said)
    if verb == "open":
        return show_page(*desk.open(said, 1))
    desk.cite([name.strip() for name in cited], None)
    return None
