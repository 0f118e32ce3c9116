"""An MCP server as a stranger may write one: plain lines of JSON, state of its own, and faults."""

import json
import os
import sys
import time

OBJECT = {"type": "object"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "note", "description": "Keep a note.", "inputSchema": TEXT},
    {"name": "notes.all", "description": "All notes.", "inputSchema": OBJECT},
    {"name": "secret", "description": "Say what the variables are.", "inputSchema": OBJECT},
    {"name": "fail", "description": "Say that something is wrong.", "inputSchema": OBJECT},
    {"name": "picture", "description": "Show a picture.", "inputSchema": OBJECT},
    {"name": "long", "description": "Say much.", "inputSchema": OBJECT},
    {"name": "sleep", "description": "Take long.", "inputSchema": OBJECT},
    {"name": "die", "description": "End at once.", "inputSchema": OBJECT},
    {"name": "submit", "description": "A name that is taken.", "inputSchema": OBJECT},
]
NOTES: list[str] = []


def text(words: str, *, wrong: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}], "isError": wrong}


def call(  # noqa: PLR0911 - a table
    name: str, arguments: dict[str, str]
) -> dict[str, object]:
    match name:
        case "note":
            NOTES.append(arguments["text"])
            return text(f"note {len(NOTES)}")
        case "notes.all":
            return text(", ".join(NOTES))
        case "secret":
            return text(f"the key is {os.environ.get('API_KEY', '')}, thanks")
        case "picture":
            return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
        case "long":
            return text("x" * 100_000)
        case "sleep":
            time.sleep(1.0)
            return text("slept")
        case "die":
            os._exit(1)
        case _:
            return text("something is wrong", wrong=True)


def answer(method: str, parameters: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": parameters["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stranger", "version": "1"},
            }
        case "tools/list" if "REFUSES_AFTER_SECONDS" in os.environ:
            time.sleep(float(os.environ["REFUSES_AFTER_SECONDS"]))
            return None
        case "tools/list":
            first = parameters.get("cursor") is None
            return {"tools": TOOLS[:5], "nextCursor": "5"} if first else {"tools": TOOLS[5:]}
        case "tools/call":
            return call(str(parameters["name"]), parameters.get("arguments") or {})  # type: ignore[arg-type]
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    sys.stderr.write("a stranger talks\n" * 5000)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        reply: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "no such method"}
        else:
            reply["result"] = result
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
