"""What is asked of a foreign server, and what it answered, as plain values."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self

from gymsuite.tools import Context
from gymsuite.types import Model


class Request(Model):
    """One call of a tool."""

    server: str
    tool: str
    arguments: Mapping[str, Any]


class Result(Model):
    """What came of it, as text. `is_error` says that the tool itself calls it a mistake."""

    text: str
    is_error: bool = False


class Allowance(NamedTuple):
    """How long a server may take to come up, and to answer."""

    start_seconds: float
    call_seconds: float


class Servers(Protocol):
    """One episode's servers, live or from a cassette; a `Stateful` value of its context."""

    async def call(self, request: Request, allowance: Allowance) -> Result:
        """Have a tool called; raises `InfrastructureError` where no answer can be had."""
        ...

    def fork(self) -> Self:
        """The same for a forked episode; raises `UsageError` where they cannot be forked."""
        ...

    async def left(self) -> Mapping[str, Any]:
        """What the verifier will see of them."""
        ...

    def close(self) -> None:
        """Let go of them; may be called again."""
        ...


OpenServers = Callable[[Context], Servers]
"""Gives an episode its servers; nothing starts before it is called."""
