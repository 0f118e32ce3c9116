"""What a foreign tool returned, as text that a model can read."""

import json

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)


def text_of(result: CallToolResult) -> str:
    """All parts one after another; what is no text is named, with its type and size."""
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(_part(part) for part in result.content)


def _part(part: ContentBlock) -> str:
    if isinstance(part, TextContent):
        return part.text
    if isinstance(part, ImageContent | AudioContent):
        return f"[{part.type}: {part.mime_type}, {len(part.data) * 3 // 4} bytes]"
    if isinstance(part, EmbeddedResource):
        resource = part.resource
        if isinstance(resource, TextResourceContents):
            return resource.text
        return f"[resource: {resource.uri}, {len(resource.blob) * 3 // 4} bytes]"
    return f"[resource: {part.uri}]"
