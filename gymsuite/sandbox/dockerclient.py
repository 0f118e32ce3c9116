"""Finds the Docker Engine of this machine, and connects to it. All of it blocks."""

import socket
from urllib.parse import urlsplit

import docker
from docker.api import APIClient
from docker.utils import kwargs_from_env

from gymsuite.errors import SandboxError

CALLS_AT_ONCE = 16

_KNOCK_SECONDS = 120.0
_UNIX = "unix://"
_DEFAULT_ADDRESS = f"{_UNIX}/var/run/docker.sock"
_HERE = ("localhost", "127.0.0.1", "::1")
_HOW = (
    "start it (systemctl start docker, or dockerd), point DOCKER_HOST to one that runs on this"
    " machine, or use the provider 'local'"
)


def find(within: float) -> tuple[APIClient, str]:
    """Connect to the Engine, and say where it is. Raises OSError where nobody listens.

    Raises `SandboxError` for an Engine of another machine.
    """
    address = str(kwargs_from_env().get("base_url", _DEFAULT_ADDRESS))
    if not address.startswith(_UNIX) and urlsplit(address).hostname not in _HERE:
        raise SandboxError(
            f"Docker Engine at {address} is not on this machine: {_HOW}", retryable=False
        )
    knock(address)
    client = docker.from_env(timeout=max(1, int(within)), max_pool_size=CALLS_AT_ONCE)
    return client.api, address


def knock(address: str) -> None:
    """Raise OSError where nobody listens: docker-py would do so too, but leave a socket open."""
    if address.startswith(_UNIX):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(_KNOCK_SECONDS)
            door.connect(address.removeprefix(_UNIX))


def complaint(error: Exception) -> str:
    """Say why there is no Engine, and the way out."""
    reason = str(error) or type(error).__name__
    if "Permission denied" in reason or "PermissionError" in reason:
        return f"this user may not use Docker: {reason}; join the group 'docker', or use 'local'"
    return f"no Docker Engine answers: {reason}; {_HOW}"
