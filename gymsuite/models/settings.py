"""What a model's server is told, on its way from the command to the process that serves."""

from pathlib import Path

from pydantic import Field

from gymsuite.types import Model

CONTEXT_STEP = 256
"""llama.cpp rounds a conversation's context up to a multiple of it."""


class ServerSettings(Model):
    """Where to listen, and what to serve: `slots` conversations of `context` tokens each at once.

    An answer ends after `longest_answer` tokens unless the client asks for its own `max_tokens`.
    Port 0 takes a free one. An `api_key` of "" asks for none.
    """

    path: Path
    name: str
    host: str
    port: int
    context: int = Field(gt=0, multiple_of=CONTEXT_STEP)
    longest_answer: int
    slots: int
    threads: int
    api_key: str = Field(default="", repr=False)
