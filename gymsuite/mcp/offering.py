"""One episode as an MCP server: its task and its tools, and no word of its reward."""

from typing import Any, Literal

import mcp_types as wire
from mcp.server.lowlevel import Server

from gymsuite.mcp.desk import Sitting
from gymsuite.types import Message, ToolSchema

PROMPT = "task"
DESCRIBE = "describe_task"
"""What every client shows its model are tools; not all of them show instructions or prompts."""

_DESCRIBING = wire.Tool(
    name=DESCRIBE,
    description="Say what the task is that all the other tools act on. Call it first.",
    input_schema={"type": "object", "properties": {}},
)
_INSTRUCTIONS = (
    "The tools act on one task. Work on it with them until it is done, and hand it in with "
    "`submit` where there is such a tool."
)


async def server_of(sitting: Sitting, tools: tuple[ToolSchema, ...], version: str) -> Server[Any]:
    """The server that a session of this episode talks to, once the episode has begun.

    It says what the task is in its instructions, as a prompt and by a tool, which is no call of
    the episode's; an environment with a tool of that name keeps its own.
    """
    greeting = await sitting.visitor.greeting()
    said = greeting.messages if greeting else ()
    text = "\n\n".join(message.text for message in said)
    own = {tool.name for tool in tools}

    async def list_tools(_: object, __: object) -> wire.ListToolsResult:
        describing = () if DESCRIBE in own else (_DESCRIBING,)
        return wire.ListToolsResult(tools=[*describing, *map(_tool, tools)])

    async def call_tool(_: object, asked: wire.CallToolRequestParams) -> wire.CallToolResult:
        if asked.name == DESCRIBE and DESCRIBE not in own:
            return _result(text, is_error=False)
        reply = await sitting.visitor.call(asked.name, asked.arguments or {})
        return _result(reply.text, is_error=reply.is_error)

    async def list_prompts(_: object, __: object) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(
            prompts=[wire.Prompt(name=PROMPT, description="What is to be done.")]
        )

    async def get_prompt(_: object, asked: wire.GetPromptRequestParams) -> wire.GetPromptResult:
        if asked.name != PROMPT:
            raise ValueError(f"no prompt {asked.name!r}; there is {PROMPT!r}")
        return wire.GetPromptResult(messages=[*map(_prompted, said)])

    return Server(
        "gymsuite",
        version=version,
        instructions=f"{_INSTRUCTIONS}\n\n{text}",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _tool(tool: ToolSchema) -> wire.Tool:
    schema = {"type": "object", **tool.parameters}
    return wire.Tool(name=tool.name, description=tool.description, input_schema=schema)


def _result(text: str, *, is_error: bool) -> wire.CallToolResult:
    return wire.CallToolResult(content=[wire.TextContent(text=text)], is_error=is_error)


def _prompted(message: Message) -> wire.PromptMessage:
    """One of the task's messages; a prompt has no role for the system's, so the user says that."""
    role: Literal["user", "assistant"] = "assistant" if message.role == "assistant" else "user"
    return wire.PromptMessage(role=role, content=wire.TextContent(text=message.text))
