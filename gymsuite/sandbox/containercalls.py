"""The Engine's calls that make a container, connect to it and remove it. All of them block."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from docker.api import APIClient
from docker.errors import APIError, ImageNotFound, NotFound

from gymsuite.sandbox.confinement import SERVER, command, host_config
from gymsuite.sandbox.engine import ImageMissing, NameTaken, Wish

_GONE_SECONDS = 30.0
_POLL_SECONDS = 0.02
_CONFLICT = 409
_IN_BETWEEN = (_CONFLICT, 500)


def create(client: APIClient, wish: Wish) -> str:
    """Create a container, and return its id. Raises `ImageMissing` and `NameTaken`."""
    with _refusals(wish.name, wish.image):
        # Not detached: only so does its stdin end, and the container, when this process dies.
        created = client.create_container(
            wish.image,
            command(wish),
            name=wish.name,
            hostname="sandbox",
            entrypoint=[SERVER],
            working_dir="/",
            user=f"{wish.account.uid}:{wish.account.gid}",
            labels=dict(wish.labels),
            host_config=host_config(wish),
            detach=False,
            stdin_open=True,
            # Nothing in it has anything to tidy up, and an Engine that is stopped need not wait.
            stop_signal="SIGKILL",
        )
    return str(created["Id"])


def claim(client: APIClient, name: str, image: str, labels: Mapping[str, str]) -> None:
    """Create a container that never runs, and remove it. Raises as `create`."""
    with _refusals(name, image):
        created = client.create_container(image, ["true"], name=name, labels=dict(labels))
    remove(client, str(created["Id"]))


def is_there(client: APIClient, name: str) -> bool:
    """Whether a container is whole, so that it can be removed: a list has it a moment earlier."""
    try:
        client.inspect_container(name)
    except NotFound:
        return False
    return True


@contextmanager
def _refusals(name: str, image: str) -> Iterator[None]:
    try:
        yield
    except ImageNotFound as error:
        raise ImageMissing(f"Docker has no image {image}") from error
    except APIError as error:
        if error.status_code != _CONFLICT:
            raise
        raise NameTaken(f"Docker has a container {name} already") from error


def attach(client: APIClient, container: str) -> socket.socket:
    """Connect to stdin, stdout and stderr of a container, by its id."""
    wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    attached = client.attach_socket(container, params=wanted)
    # A descriptor of our own, since docker-py's belongs to a response that closes it when it likes.
    connection = socket.socket(fileno=os.dup(attached.fileno()))
    response = getattr(attached, "_response", None)
    if response is not None:
        response.close()
    attached.close()
    return connection


def remove(client: APIClient, container: str, *, within: float = _GONE_SECONDS) -> None:
    """Remove a container, by its id or name, and see it gone; or raise TimeoutError."""
    end = time.monotonic() + within
    said = ""
    while time.monotonic() < end:
        try:
            client.remove_container(container, v=True, force=True)
        except NotFound:
            return
        except APIError as error:
            # The Engine is removing it already, because its first process ended; or that ended just
            # when it was to be killed, and neither the Engine's own removal nor this one was done.
            if error.status_code not in _IN_BETWEEN:
                raise
            said = f": {error.explanation}"
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"it is still there after {within:g} seconds{said}")
