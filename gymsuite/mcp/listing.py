"""The tools of foreign servers, written down: an environment's tools never change under it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import DefinitionError, InfrastructureError
from gymsuite.types import Model, ToolSchema


class Listing(Model):
    """Which tools each server had when it was asked."""

    servers: Mapping[str, tuple[ToolSchema, ...]]

    def only(self, *tools: str) -> "Listing":
        """The same without any other tool; raises `DefinitionError` for one that is not there."""
        known = {tool.name for listed in self.servers.values() for tool in listed}
        if unknown := set(tools) - known:
            raise DefinitionError(
                f"no server lists a tool {min(unknown)!r}; there are: {', '.join(sorted(known))}"
            )
        kept = {
            name: tuple(tool for tool in listed if tool.name in tools)
            for name, listed in self.servers.items()
        }
        return Listing(servers=kept)


def read_listing(path: Path) -> Listing:
    """Read what `gymsuite mcp tools` wrote."""
    try:
        return Listing.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        why = complaints(error) if isinstance(error, ValidationError) else error
        raise DefinitionError(
            f"{path}: no list of tools: {why}; `gymsuite mcp tools` writes one"
        ) from error


def check_unchanged(name: str, wanted: Iterable[ToolSchema], found: Iterable[ToolSchema]) -> None:
    """Raise `InfrastructureError` where a server no longer has a tool as it was listed."""
    now: dict[str, Mapping[str, Any]] = {tool.name: tool.parameters for tool in found}
    for tool in wanted:
        if now.get(tool.name) != tool.parameters:
            state = "takes other arguments" if tool.name in now else "is gone"
            raise InfrastructureError(
                f"MCP server {name!r} changed: its tool {tool.name!r} {state}; list its tools "
                "again if that is meant",
                retryable=False,
            )
