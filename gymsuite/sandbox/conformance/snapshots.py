"""Freezing a file system, going on above it, and opening it again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gymsuite.errors import SandboxError
from gymsuite.sandbox.conformance.case import PATIENCE, Case, NotOffered, done, expect, over, same
from gymsuite.sandbox.conformance.recipe import WORKDIR
from gymsuite.sandbox.conformance.waiting import command_words
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

GROUP = "snapshot"


async def _snapshot(sandbox: Sandbox) -> Image:
    try:
        return await sandbox.snapshot()
    except SandboxError as error:
        if error.retryable:
            raise
        raise NotOffered(str(error)) from error


async def _changed(sandbox: Sandbox) -> dict[str, bytes | None]:
    found = await sandbox.changes(WORKDIR)
    return {
        change.path.removeprefix(f"{WORKDIR}/"): change.after and change.after.data
        for change in found.changed
    }


@asynccontextmanager
async def _frozen(
    open_sandbox: OpenSandbox, spec: SandboxSpec, script: str
) -> AsyncIterator[tuple[Image, SandboxSpec]]:
    """The snapshot of a sandbox that ran a script and is gone, and what opens it."""
    async with open_sandbox(spec) as sandbox:
        await done(sandbox, script)
        image = await _snapshot(sandbox)
    yield image, spec.model_copy(update={"image": image.name})


async def a_sandbox_goes_on_above_its_snapshot_without_its_processes(
    open_sandbox: OpenSandbox, spec: SandboxSpec
) -> None:
    async with open_sandbox(spec) as sandbox:
        await done(sandbox, "echo one > one; echo more >> plain.txt; rm script.sh")
        await done(sandbox, "sleep 4371 & setsid sleep 4372 &")
        held = await _snapshot(sandbox)
        same({"4371", "4372"} & await command_words(sandbox), set())
        listing = await done(sandbox, "echo two > two; cat one two plain.txt; ls script.sh || :")
        expect(listing.startswith(b"one\ntwo\nplain\nmore\n"), listing)
        promised = {"one": b"one\n", "two": b"two\n", "plain.txt": b"plain\nmore\n"}
        same(await _changed(sandbox), {**promised, "script.sh": None})
        del held


async def children_start_where_their_parent_stood_and_share_nothing_that_they_write(
    open_sandbox: OpenSandbox, spec: SandboxSpec
) -> None:
    async def child(spec: SandboxSpec, number: int) -> None:
        async with open_sandbox(spec) as sandbox:
            same(await done(sandbox, "ls tree; cat prepared"), b"new.txt\nready\n")
            await done(sandbox, f"echo {number} > prepared")
            promised = {
                "prepared": f"{number}\n".encode(),
                "tree/new.txt": b"anew\n",
                "tree/one.txt": None,
                "tree/deep/two.txt": None,
            }
            same(await _changed(sandbox), promised)

    script = "echo ready > prepared; rm -r tree; mkdir tree; echo anew > tree/new.txt"
    async with _frozen(open_sandbox, spec, script) as (_image, opens):
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(child(opens, number) for number in range(3)))


async def what_is_frozen_is_frozen_again_on_top(
    open_sandbox: OpenSandbox, spec: SandboxSpec
) -> None:
    async with (
        _frozen(open_sandbox, spec, "echo 1 > a; rm -r tree") as (_first, opens),
        _frozen(open_sandbox, opens, "rm a; echo 2 > b; rm plain.txt") as (_second, again),
        open_sandbox(again) as sandbox,
    ):
        gone = {"plain.txt": None, "tree/one.txt": None, "tree/deep/two.txt": None}
        same(await _changed(sandbox), {"b": b"2\n", **gone})


CASES: tuple[Case, ...] = tuple(
    over(GROUP, body)
    for body in (
        a_sandbox_goes_on_above_its_snapshot_without_its_processes,
        children_start_where_their_parent_stood_and_share_nothing_that_they_write,
        what_is_frozen_is_frozen_again_on_top,
    )
)
