"""Asks foreign servers which tools they have."""

from collections.abc import Mapping

from gymsuite.mcp.link import Link
from gymsuite.mcp.listing import Listing
from gymsuite.mcp.manifest import ServerEntry
from gymsuite.mcp.places import Connect
from gymsuite.types import ToolSchema


async def list_tools(
    entries: Mapping[str, ServerEntry], connect: Connect, *, seconds: float = 60.0
) -> Listing:
    """Ask every server; raises `InfrastructureError` for one that does not answer in time."""
    found: dict[str, tuple[ToolSchema, ...]] = {}
    for name, entry in entries.items():
        link = Link(name, connect(entry))
        try:
            found[name] = await listed(link, seconds)
        finally:
            await link.closed()
    return Listing(servers=found)


async def listed(link: Link, seconds: float) -> tuple[ToolSchema, ...]:
    """The tools of one server, as models will see them."""
    return tuple(
        ToolSchema(
            name=tool.name, description=tool.description or "", parameters=dict(tool.input_schema)
        )
        for tool in await link.tools(seconds)
    )
