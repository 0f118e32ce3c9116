"""What is seen of a sandbox that is broken from outside."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from gymsuite import SandboxSpec
from gymsuite.errors import SandboxDead

from .conftest import Provider

SPEC = SandboxSpec(image="fixture")
PATIENCE = 30.0


def test_a_lost_sandbox_is_an_error_for_waiting_and_for_later_calls(provider: Provider) -> None:
    async def main() -> tuple[object, ...]:
        async with provider.open(SPEC) as sandbox:
            waiting = asyncio.create_task(sandbox.exec("sleep 1000", timeout=PATIENCE))
            await sandbox.exec("true", timeout=PATIENCE)
            provider.kill(sandbox)
            calls = (
                waiting,
                sandbox.exec("true", timeout=PATIENCE),
                sandbox.read("plain.txt"),
                sandbox.write("new.txt", b""),
                sandbox.changes("/workspace"),
                sandbox.stats(),
            )
            return tuple([await asyncio.wait_for(caught(call), PATIENCE) for call in calls])

    async def caught(call: Awaitable[object]) -> type:
        with pytest.raises(SandboxDead) as error:
            await call
        return error.type

    assert set(asyncio.run(main())) == {SandboxDead}


HOLD_MEMORY = """
import os
held = os.memfd_create("held", 0)
for _ in range(90):
    os.write(held, b"x" * 1_000_000)
os.set_inheritable(held, True)
if os.fork() == 0:
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), stream)
    os.execv("/bin/sleep", ["sleep", "1000"])
"""


@pytest.mark.docker
def test_memory_that_a_small_process_holds_is_not_paid_for_by_the_exec_server(
    docker: Provider,
) -> None:
    async def body() -> Any:
        async with docker.open(SandboxSpec(image="fixture", memory_bytes=128 << 20)) as sandbox:
            await sandbox.exec("head -c 60000000 /dev/zero > big", timeout=PATIENCE)
            await sandbox.exec(["python3", "-c", HOLD_MEMORY], timeout=PATIENCE)
            data = await sandbox.read("big")
            return len(data or b""), await sandbox.exec("echo alive", timeout=PATIENCE)

    size, alive = asyncio.run(body())
    assert size == 60_000_000
    assert alive.stdout == b"alive\n"
