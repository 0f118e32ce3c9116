"""Containers whose owner was killed while the Engine was making them."""

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest
from docker.client import DockerClient

from gymsuite.sandbox import docker as engine_door
from gymsuite.sandbox.creations import abandoned, creating
from gymsuite.sandbox.dockerhost import tag_of
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.owner import this_process
from gymsuite.sandbox.reaper import OWNER_LABEL, reap
from gymsuite.suite import default_cache

pytestmark = pytest.mark.docker

ADDRESS = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
# The request is whole, so nothing that happens to its sender stops the Engine.
ASKER = """
import json, os, signal, socket, sys
from pathlib import Path
from gymsuite.sandbox.creations import creating
from gymsuite.sandbox.reaper import labels

cache, name, image, address, seconds = sys.argv[1:]
body = json.dumps({"Image": image, "Cmd": ["true"], "Labels": labels(600)})
head = f"POST /containers/create?name={name} HTTP/1.1\\r\\nHost: engine\\r\\n"
kind = f"Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
with creating(Path(cache), name), socket.socket(socket.AF_UNIX) as engine:
    engine.connect(address)
    engine.sendall(f"{head}{kind}{body}".encode())
    engine.settimeout(float(seconds))
    try:
        engine.recv(1)
    except (BlockingIOError, TimeoutError):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def image(docker_roots: tuple[Path, ...]) -> Image:
    with contextlib.closing(Images(docker_roots, default_cache())) as images:
        return asyncio.run(images.ensure("fixture", base="debian"))


def is_there(client: DockerClient, name: str) -> bool:
    return bool(client.api.containers(all=True, filters={"name": name}))


async def reap_once(cache: Path) -> None:
    async with engine_door.connect() as engine:
        await reap(engine, cache)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.02, 10.0])
def test_a_container_that_its_killed_owner_had_asked_for_is_gone_after_one_reap(
    client: DockerClient, image: Image, tmp_path: Path, seconds: float
) -> None:
    name = f"gymsuite-orphan-{secrets.token_hex(8)}"
    asker = [sys.executable, "-c", ASKER, str(tmp_path), name, tag_of(image), ADDRESS, str(seconds)]
    subprocess.run(asker, check=False)
    assert abandoned(tmp_path) == [name]
    asyncio.run(reap_once(tmp_path))
    assert abandoned(tmp_path) == []
    time.sleep(1)
    assert not is_there(client, name)


def test_the_image_that_a_killed_builder_made_of_its_step_goes_with_the_container(
    client: DockerClient, image: Image, tmp_path: Path
) -> None:
    dead = this_process().rpartition("/")[0] + "/0"
    made = {}
    for owner in (dead, this_process()):
        created = client.api.create_container(tag_of(image), ["true"], labels={OWNER_LABEL: owner})
        made[owner] = (created["Id"], client.api.commit(created["Id"])["Id"])
    try:
        asyncio.run(reap_once(tmp_path))
        left = {one["Id"] for one in client.api.images(all=True)}
        assert {owner: number in left for owner, (_, number) in made.items()} == {
            dead: False,
            this_process(): True,
        }
        assert not client.api.containers(all=True, filters={"id": made[dead][0]})
    finally:
        container, number = made[this_process()]
        client.api.remove_container(container)
        client.api.remove_image(number)


def test_a_container_that_was_never_asked_for_keeps_nobody_waiting(
    client: DockerClient, image: Image, tmp_path: Path
) -> None:
    assert image
    name = f"gymsuite-orphan-{secrets.token_hex(8)}"
    dead = this_process().rpartition("/")[0] + "/0"
    with creating(tmp_path, name):
        next(tmp_path.glob(f"*/{name}")).write_text(dead)
        asyncio.run(reap_once(tmp_path))
        assert abandoned(tmp_path) == []
    assert not is_there(client, name)
