"""A chat-completions server that answers at once: calls the no-op tool, then submits."""

import asyncio
import json
import sys


def answer(turn: int, turns: int) -> bytes:
    """The reply to the `turn`-th question of an episode."""
    name, arguments = ("noop", '{"text": "x"}') if turn < turns else ("submit", "{}")
    call = {"id": str(turn), "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return json.dumps({"id": "x", "model": "stub", "choices": [choice], "usage": usage}).encode()


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, turns: int) -> None:
    """Serve one connection until the client ends it."""
    replies = {turn: answer(turn, turns) for turn in range(1, turns + 1)}
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = (
                int(line.split(b":")[1])
                for line in head.splitlines()
                if line.lower().startswith(b"content-length:")
            )
            asked = json.loads(await reader.readexactly(length))["messages"]
            body = replies[1 + sum(message["role"] == "assistant" for message in asked)]
            headers = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            writer.write(headers % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(turns: int) -> None:
    """Listen on loopback, print the port, and end with the standard input."""
    server = await asyncio.start_server(lambda r, w: talk(r, w, turns), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
