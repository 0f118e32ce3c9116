"""The same desk for agents that speak in tags: <search>, <open>, <answer> and <cite>.

An action is read by itself and nothing before it is: a document that holds an answer tag, or a
prompt with an example of one, cannot end an episode.
"""

import itertools
from collections.abc import Iterator

from gymsuite.environment import Respond
from gymsuite.search.desk import Desk, Shelf, Withheld, desk_of
from gymsuite.search.tools import nothing_withheld, show_hits, show_page
from gymsuite.tools import Context, ToolError
from gymsuite.types import Action, Message

RESULTS = 3
_VERBS = ("search", "open", "answer")
_HINT = (
    "That was no action. Call a tool, or write <search>words</search> to search, <open>id</open> "
    "to open a document, or <answer>answer</answer> with <cite>id</cite> for every document that "
    "proves it."
)


def text_protocol(library: Shelf, *, withheld: Withheld = nothing_withheld) -> Respond:
    """An environment's `respond` over one library; the first complete tag of an action counts."""

    async def respond(context: Context, action: Action) -> tuple[Message, ...] | None:
        text = _without_thoughts(action.text)
        verb, said = _act(text)
        if not verb:
            return (Message(role="user", content=_HINT),)
        desk = await desk_of(context, library, withheld)
        cited = [text[start:end] for _, start, end, _ in _elements(text, "cite")]
        try:
            reply = await _carry_out(desk, verb, said, cited)
        except ToolError as error:
            reply = f"error: {error}"
        if reply is None:
            context.answer, context.submitted = said, True
            return None
        return (Message(role="user", content=f"<information>\n{reply}\n</information>"),)

    return respond


def _elements(text: str, tag: str) -> Iterator[tuple[int, int, int, int]]:
    """Where each element and its content begin, and where they end.

    A pattern would look for the end of each beginning to the end of the text: seconds, where a
    model repeats itself.
    """
    opening, closing, at = f"<{tag}>", f"</{tag}>", 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        at = end + len(closing)
        yield start, start + len(opening), end, at


def _without_thoughts(text: str) -> str:
    kept, at = [], 0
    for start, _, _, end in _elements(text, "think"):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def _act(text: str) -> tuple[str, str]:
    """The verb of the first complete act, and what it is about; "" where there is none."""
    acts = [
        (start, verb, text[inner:end].strip())
        for verb in _VERBS
        for start, inner, end, _ in itertools.islice(_elements(text, verb), 1)
    ]
    return min(acts)[1:] if acts else ("", "")


async def _carry_out(desk: Desk, verb: str, said: str, cited: list[str]) -> str | None:
    """What the desk replies, or None for an answer."""
    if verb == "search":
        return show_hits(await desk.search(said, RESULTS), said)
    if verb == "open":
        return show_page(*desk.open(said, 1))
    desk.cite([name.strip() for name in cited], None)
    return None
