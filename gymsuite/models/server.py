"""Starts the process that serves a model, and ends it."""

import asyncio
import errno
import importlib.util
import ipaddress
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from gymsuite.errors import ModelError, UsageError
from gymsuite.models.settings import ServerSettings

_START_SECONDS = 120.0


class ModelServer(NamedTuple):
    """A server that listens: where, and the process that it is."""

    base_url: str
    process: asyncio.subprocess.Process

    async def ended(self) -> ModelError:
        """Wait until it ends by itself, which it should not; return what to say of that."""
        return ModelError(f"the model's server ended by itself ({_how(await self.process.wait())})")


@asynccontextmanager
async def open_server(settings: ServerSettings) -> AsyncIterator[ModelServer]:
    """Serve until the block ends.

    Raises `UsageError` where xllamacpp is not installed, the address cannot be had, or others could
    reach it without a key, and `ModelError` if the server does not start.
    """
    check(settings)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "gymsuite.models.llama"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield ModelServer(await _address(process, settings), process)
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())


def check(settings: ServerSettings) -> None:
    """Raise `UsageError` for what can be known to go wrong before a model is fetched."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise UsageError("serving a model needs xllamacpp: pip install 'gymsuite[models]'")
    if not is_loopback(settings.host) and not settings.api_key:
        raise UsageError(
            f"--host {settings.host} lets other machines reach the model: give a key that they "
            "must send, with --api-key-env NAME, or stay with --host 127.0.0.1"
        )
    _check_address(settings.host, settings.port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_address(host: str, port: int) -> None:
    """Bind it for a moment: the server itself would not say why it cannot."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            problem = f"port {port} of {host} is taken; name another, or --port 0 for a free one"
        elif error.errno in (errno.EACCES, errno.EPERM):
            problem = f"port {port} is not for ordinary users; name one above 1023"
        else:
            problem = f"cannot listen on --host {host}: {error.strerror}"
        raise UsageError(problem) from error


async def _address(process: asyncio.subprocess.Process, settings: ServerSettings) -> str:
    if process.stdin is None or process.stdout is None:
        raise ModelError("the model's server was started without pipes")
    process.stdin.write(settings.model_dump_json().encode() + b"\n")
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline()
    except TimeoutError as error:
        message = f"the model's server did not start within {_START_SECONDS:.0f} seconds"
        raise ModelError(message) from error
    if not line:
        how = _how(await process.wait())
        raise ModelError(f"the model's server did not start ({how}); what it said stands above")
    return f"{line.decode().strip()}/v1"


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    hint = "; was there enough memory?" if -code == signal.SIGKILL else ""
    return f"killed by {signal.Signals(-code).name}{hint}"
