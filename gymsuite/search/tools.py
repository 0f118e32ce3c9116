"""The tools of a search environment: search, open, find and submit."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from gymsuite.search.desk import MOST_RESULTS, Citation, Shelf, Withheld, desk_of
from gymsuite.search.documents import Document
from gymsuite.search.excerpts import Page, escape, snippet, words_of
from gymsuite.search.retriever import Hit
from gymsuite.tools import Context, Tool
from gymsuite.types import Task

_LONGEST_TITLE = 200


def nothing_withheld(_: Task) -> tuple[str, ...]:
    """Every document can be found."""
    return ()


def search_tools(library: Shelf, *, withheld: Withheld = nothing_withheld) -> tuple[Tool, ...]:
    """The tools over one library; `withheld` names documents that a task must not find."""

    async def search(
        context: Context, query: str, limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 5
    ) -> str:
        """Search the documents and return the best hits: id, title and a snippet of each.

        Ids are good for this episode only.
        """
        desk = await desk_of(context, library, withheld)
        return show_hits(await desk.search(query, limit), query)

    async def open(  # noqa: A001 - the tool's name
        context: Context, document: str, page: Annotated[int, Field(ge=1)] = 1
    ) -> str:
        """Open a document by the id that `search` gave, and return its text, a page at a time."""
        desk = await desk_of(context, library, withheld)
        return show_page(*desk.open(document, page))

    async def find(context: Context, document: str, text: str) -> str:
        """Find where a text occurs in a document, ignoring case."""
        desk = await desk_of(context, library, withheld)
        name, found = desk.find(document, text)
        if not found:
            return f"[{name}] does not contain it"
        return "\n".join(f"[{name}] page {number}: {escape(words)}" for number, words in found)

    async def submit(
        context: Context,
        answer: str = "",
        citations: tuple[str | Citation, ...] = (),
        confidence: Annotated[float, Field(ge=0, le=1)] | None = None,
    ) -> str:
        """End the episode with one short answer and the documents that prove it.

        Cite the id of every document that the answer rests on, and only documents that you have
        opened; a citation may carry a short literal quote.
        """
        desk = await desk_of(context, library, withheld)
        desk.cite(citations, confidence)
        context.answer, context.submitted = answer, True
        return "submitted"

    return (search, open, find, submit)


def show_hits(hits: Sequence[tuple[str, Hit]], query: str) -> str:
    """The hits as an agent reads them."""
    if not hits:
        return "nothing found"
    wanted = set(words_of(query))
    return "\n\n".join(
        f"[{name}] {_title(hit.document)}\n{escape(snippet(hit.document.text, wanted))}"
        for name, hit in hits
    )


def show_page(name: str, document: Document, page: Page) -> str:
    """A page as an agent reads it."""
    more = f" (page {page.number} of {page.total})" if page.total > 1 else ""
    dated = f"\nDate: {escape(document.date)}" if document.date else ""
    linked = f"\nURL: {escape(document.url)}" if document.url else ""
    return f"[{name}] {_title(document)}{more}{dated}{linked}\n\n{escape(page.text)}"


def _title(document: Document) -> str:
    return escape(" ".join(document.title.split()))[:_LONGEST_TITLE]
