import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gymsuite import Episode
from gymsuite.registry import Registry
from gymsuite.suite import suite_root
from gymsuite.worlds.replay import no_sandbox

BOUNDS = {
    "string": ("maxLength", "enum", "const"),
    "integer": ("maximum", "enum"),
    "array": ("maxItems",),
}


def unbounded(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    """The places of a JSON schema at which an argument may be as large as one likes."""
    if bounds := BOUNDS.get(schema.get("type", "")):
        if not schema.keys() & {*bounds}:
            yield where
    elif not schema.keys() & {"anyOf", "$ref", "enum", "const", "properties"}:
        yield where
    for part in schema.get("anyOf", ()):
        yield from unbounded(part, where)
    if "items" in schema:
        yield from unbounded(schema["items"], f"{where}[]")
    for name, part in schema.get("properties", {}).items():
        yield from unbounded(part, f"{where}.{name}")


@pytest.mark.parametrize("world", ["tools/shop-v1", "tools/office-v1", "tools/tables-v1"])
def test_no_argument_of_a_worlds_tool_is_without_bounds(world: str) -> None:
    environment = Registry(suite_root() / "registry.yaml").load(world)

    async def schemas() -> Mapping[str, Mapping[str, Any]]:
        async with Episode(environment, no_sandbox) as episode:
            observation, _ = await episode.reset(environment.tasks[0], 0)
            return {tool.name: tool.parameters for tool in observation.tools}

    tools = asyncio.run(schemas())
    assert [
        place
        for name, schema in tools.items()
        if name != "submit"
        for place in unbounded(schema, name)
    ] == []
