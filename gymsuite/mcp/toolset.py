"""Foreign servers' tools as an environment's tools."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from gymsuite.mcp.listing import Listing
from gymsuite.mcp.requests import Allowance, OpenServers, Request, Servers
from gymsuite.tools import Context, SchemaTool, Tool, ToolError
from gymsuite.types import ToolSchema

_STATE = "mcp"
_MOST_NAME_CHARACTERS = 64


def mcp_tools(
    listing: Listing, open_servers: OpenServers, *, reserved: Collection[str] = ("submit",)
) -> tuple[Tool, ...]:
    """The listed tools. One whose name is taken, or reserved, gets its server's before it.

    What a server calls a mistake comes back to the agent; a server that breaks is an
    `InfrastructureError`. A reply is cut to the episode's `output_bytes`, and has to come within
    its `command_seconds`.
    """
    names = _names(listing, reserved)
    return tuple(
        _tool(server, schema, names[server, schema.name], open_servers)
        for server, schemas in listing.servers.items()
        for schema in schemas
    )


def _tool(server: str, schema: ToolSchema, name: str, open_servers: OpenServers) -> Tool:
    async def run(context: Context, arguments: Mapping[str, Any]) -> str:
        servers: Servers | None = context.state.get(_STATE)
        if servers is None:
            servers = context.state[_STATE] = open_servers(context)
        request = Request(server=server, tool=schema.name, arguments=arguments)
        allowance = Allowance(context.limits.reset_seconds, context.command_timeout)
        result = await servers.call(request, allowance)
        text = capped(result.text, context.limits.output_bytes)
        if result.is_error:
            raise ToolError(text)
        return text

    return SchemaTool(schema.model_copy(update={"name": name}), run)


def capped(text: str, max_bytes: int) -> str:
    """The text with its middle left out where it is longer than allowed."""
    data = text.encode(errors="replace")
    if len(data) <= max_bytes:
        return data.decode()
    half = max_bytes // 2
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return f"{head}\n[{len(data) - 2 * half} bytes left out]\n{tail}"


def _names(listing: Listing, reserved: Collection[str]) -> Mapping[tuple[str, str], str]:
    """What models may call each tool: letters, digits, `_` and `-`, and each name once."""
    tools = [(s, tool.name) for s, schemas in listing.servers.items() for tool in schemas]
    plain = Counter(_plain(tool) for _, tool in tools)
    taken = set(reserved)
    names: dict[tuple[str, str], str] = {}
    for server, tool in tools:
        name = _plain(tool)
        if plain[name] > 1 or name in reserved:
            name = _plain(f"{server}__{tool}")
        number = 2
        while name in taken:
            name, number = f"{_plain(f'{server}__{tool}')[:60]}_{number}", number + 1
        taken.add(name)
        names[server, tool] = name
    return names


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_MOST_NAME_CHARACTERS]
