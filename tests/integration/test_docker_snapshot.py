"""What only docker's snapshots and its pool of containers promise, against a real Engine."""

import asyncio
import gc
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite import OpenSandbox, Sandbox, SandboxSpec
from gymsuite.errors import SandboxError
from gymsuite.sandbox.container import DockerSandbox
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.protocol import Changes, FileState
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.scratch import remove_stale
from gymsuite.suite import default_cache

from .conftest import Provider

pytestmark = pytest.mark.docker

PATIENCE = 60.0
SPEC = SandboxSpec(image="fixture", memory_bytes=256 << 20)
WORK = (
    "echo more >> plain.txt; rm script.sh; mv tree moved; ln -s plain.txt new-link; mkdir -p d/e;"
    "chmod 500 d; head -c 3000000 /dev/urandom > big; chmod 400 big; echo t > /tmp/t"
)
STATE = "find . -printf '%P %y %m %l\\n' | sort; cat plain.txt /tmp/t; md5sum big"
MAPPED = (
    "import mmap; f = open('plain.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0]; m[0] = 80;"
    "m.close()"
)


@pytest.fixture
def with_docker(docker_roots: tuple[Path, ...], tmp_path: Path) -> Callable[..., Any]:
    """Run a test's body over one provider, from a cache of whose snapshots there are no others."""

    def run(body: Callable[[OpenSandbox], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            opening = open_provider("docker", image_roots=docker_roots, cache=default_cache())
            async with opening as provider:
                return await body(provider.open)

        return asyncio.run(main())

    return run


async def state(sandbox: Sandbox) -> str:
    return (await sandbox.exec(STATE, timeout=PATIENCE)).output


def is_private(path: Path) -> bool:
    return path.parent.stat().st_mode & 0o077 == 0 and path.is_file()


def is_absent(path: Path) -> bool:
    return not path.exists() and not path.parent.exists()


def of(image: Image) -> SandboxSpec:
    return SPEC.model_copy(update={"image": image.name})


def test_children_of_a_snapshot_have_all_that_was_written_and_nothing_of_each_other(
    with_docker: Callable[..., Any],
) -> None:
    async def body(open_: OpenSandbox) -> None:
        async with open_(SPEC) as parent:
            await parent.exec(WORK, timeout=PATIENCE)
            before = await state(parent)
            image = await parent.snapshot()
            changes = await parent.changes("/workspace")
            await parent.exec("echo later > later", timeout=PATIENCE)
            async with open_(of(image)) as one, open_(of(image)) as other:
                assert await state(one) == await state(other) == before
                await one.exec("echo one > one", timeout=PATIENCE)
                assert await state(other) == before
                # Relative to the image that was built, as if all had been done in one sandbox.
                assert await other.changes("/workspace") == changes
                again = await one.snapshot()
            async with open_(of(again)) as grandchild:
                assert await grandchild.read("one") == b"one\n"
                assert len((await grandchild.changes("/")).changed) == len(changes.changed) + 2

    with_docker(body)


def test_a_snapshot_is_gone_with_its_image(with_docker: Callable[..., Any]) -> None:
    async def body(open_: OpenSandbox) -> None:
        async with open_(SPEC) as parent:
            image = await parent.snapshot()
            spec, path = of(image), Path(image.frozen[-1].key)
            assert is_private(path)
            del image
            gc.collect()
            assert is_absent(path)
            with pytest.raises(SandboxError, match="last reference"):
                async with open_(spec):
                    pass

    with_docker(body)


def test_the_snapshots_of_a_killed_process_are_removed(
    docker_roots: tuple[Path, ...], tmp_path: Path
) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from gymsuite.sandbox.scratch import Scratches\n"
        "(Scratches(Path(sys.argv[1])).fresh() / 'entries').write_text('x')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "frozen"], check=False)
    assert list(tmp_path.glob("frozen/*/*/entries"))
    assert remove_stale(tmp_path / "frozen")
    assert not list(tmp_path.glob("frozen/*"))


def test_a_write_through_a_mapping_is_a_change(docker: Provider) -> None:
    async def main() -> Changes:
        async with docker.open(SPEC) as sandbox:
            await sandbox.exec(["python3", "-c", MAPPED], timeout=PATIENCE)
            return await sandbox.changes("/workspace")

    (change,) = asyncio.run(main()).changed
    assert change.after == FileState(0o100644, b"Plain\n")


def test_what_only_looks_unchanged_is_a_change(docker: Provider) -> None:
    script = (
        "cp -p plain.txt copy; echo PLAIN > plain.txt; touch -r copy plain.txt; rm copy;"
        "ln script.sh hard; mv tree/one.txt x; mv tree/deep/two.txt tree/one.txt;"
        "mv x tree/deep/two.txt; chmod +x layered.txt"
    )

    async def main() -> Changes:
        async with docker.open(SPEC) as sandbox:
            await sandbox.exec(script, timeout=PATIENCE)
            return await sandbox.changes("/workspace")

    found = {change.path.removeprefix("/workspace/") for change in asyncio.run(main()).changed}
    assert found == {"plain.txt", "hard", "layered.txt", "tree/one.txt", "tree/deep/two.txt"}


def test_a_container_of_the_pool_is_fresh_and_handed_out_once(
    with_docker: Callable[..., Any],
) -> None:
    async def body(open_: OpenSandbox) -> list[str]:
        names = []
        for _ in range(5):
            async with open_(SPEC) as sandbox:
                assert isinstance(sandbox, DockerSandbox)
                assert await sandbox.read("mark") is None
                assert (await sandbox.changes("/")) == Changes((), ())
                await sandbox.write("mark", b"used")
                names.append(sandbox.name)
            await asyncio.sleep(0.5)
        return names

    names = with_docker(body)
    assert len(set(names)) == len(names)
    assert all(name.startswith("gymsuite-fixture-") for name in names)
