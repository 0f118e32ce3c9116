"""One episode as an MCP server: its tools, and its task as a prompt; no word of its reward."""

from typing import Any

import mcp_types as wire
from mcp.server.lowlevel import Server

from gymsuite.mcp.desk import Sitting
from gymsuite.types import ToolSchema

PROMPT = "task"
_INSTRUCTIONS = (
    "The tools act on one task. The prompt `task` says what it is; work on it with the tools until "
    "it is done, and hand it in with `submit` where there is such a tool."
)


def server_of(sitting: Sitting, tools: tuple[ToolSchema, ...], version: str) -> Server[Any]:
    """The server that a session of this episode talks to."""

    async def list_tools(_: object, __: object) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=[_tool(tool) for tool in tools])

    async def call_tool(_: object, asked: wire.CallToolRequestParams) -> wire.CallToolResult:
        reply = await sitting.visitor.call(asked.name, asked.arguments or {})
        content: list[wire.ContentBlock] = [wire.TextContent(text=reply.text)]
        return wire.CallToolResult(content=content, is_error=reply.is_error)

    async def list_prompts(_: object, __: object) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(
            prompts=[wire.Prompt(name=PROMPT, description="What is to be done.")]
        )

    async def get_prompt(_: object, asked: wire.GetPromptRequestParams) -> wire.GetPromptResult:
        if asked.name != PROMPT:
            raise ValueError(f"no prompt {asked.name!r}; there is {PROMPT!r}")
        return wire.GetPromptResult(messages=await _messages(sitting))

    return Server(
        "gymsuite",
        version=version,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _tool(tool: ToolSchema) -> wire.Tool:
    schema = {"type": "object", **tool.parameters}
    return wire.Tool(name=tool.name, description=tool.description, input_schema=schema)


async def _messages(sitting: Sitting) -> list[wire.PromptMessage]:
    """The task's messages; a prompt has no role for the system's, so that is said by the user."""
    greeting = await sitting.visitor.greeting()
    return [
        wire.PromptMessage(
            role="assistant" if message.role == "assistant" else "user",
            content=wire.TextContent(text=message.text),
        )
        for message in (greeting.messages if greeting else ())
    ]
