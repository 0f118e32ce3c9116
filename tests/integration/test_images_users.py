"""Images that end as another user than root: that user's in both providers, whoever built them."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import SandboxError
from gymsuite.sandbox import docker as engine_door
from gymsuite.sandbox.collecting import clean
from gymsuite.sandbox.dockerbuild import open_docker_build
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images, layer_owner
from gymsuite.sandbox.local import LocalHost, open_local
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.reaper import IMAGE_PREFIX
from gymsuite.sandbox.store import Store
from gymsuite.suite import default_cache

from .conftest import missing

PATIENCE = 60.0
NAME = f"users-{os.getpid()}"
RECIPE = """\
ARG BASE=host
FROM ${BASE}
RUN echo app:x:1234:1235::/home/app:/bin/sh >> /etc/passwd && echo app:x:1235: >> /etc/group \\
    && mkdir /home/app && chown app:app /home/app && chown 7:8 /etc/hosts
WORKDIR /srv/app
COPY --chown=app Dockerfile plain.txt
USER app
RUN id -u > who && echo "$HOME" >> who && touch ~/made
"""
FACTS = """\
id -u; id -g; whoami; echo $HOME; pwd; cat who
stat -c '%U %G %n' . plain.txt who ~ ~/made /tmp
echo more >> plain.txt && echo new > new && echo x > ~/x && echo x > /tmp/x && stat -c %U new
grep -h ^CapEff /proc/self/status
"""
SEEN = """\
1234
1235
app
/home/app
/srv/app
1234
/home/app
app app .
app app plain.txt
app app who
app app /home/app
app app /home/app/made
app app /tmp
app
CapEff:\t0000000000000000
"""
# A user namespace in which there can be no other, as in many containers.
WITHOUT_NAMESPACES = (
    *("unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "sh", "-c"),
    *('echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"),
)
ELSEWHERE = """
import asyncio, contextlib, sys
from pathlib import Path
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.protocol import ExecResult

async def elsewhere(image, command, tree):
    print(image.user, command, flush=True)
    return ExecResult(0, b"", b"")

folder, cache = map(Path, sys.argv[1:])
with contextlib.closing(Images([folder], cache, otherwise=elsewhere)) as images:
    asyncio.run(images.ensure("image", base="host"))
"""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("sandboxes")
    (root / NAME).mkdir()
    (root / NAME / "Dockerfile").write_text(RECIPE)
    yield root
    clean(default_cache(), keep=lambda image: not image.name.startswith(NAME))
    for empty in (default_cache() / "images").glob(f"{NAME}*"):
        empty.rmdir()
    with contextlib.suppress(SandboxError):
        asyncio.run(remove_from_docker())


async def remove_from_docker() -> None:
    async with engine_door.connect() as engine:
        for tag in await engine.images(f"{IMAGE_PREFIX}{NAME}"):
            await engine.remove_image(tag)


async def facts(sandbox: Sandbox) -> str:
    return (await sandbox.exec(FACTS, timeout=PATIENCE)).output


async def look(sandbox: Sandbox) -> None:
    """See that everything of a sandbox is its user's."""
    assert await facts(sandbox) == SEEN
    await sandbox.write("made/by/us", b"x")
    assert (await sandbox.exec("rm made/by/us", timeout=PATIENCE)).exit_code == 0
    for name in ("app", "1234", "app:app"):
        assert (await sandbox.exec("id -u", timeout=PATIENCE, user=name)).output == "1234\n"
    for name in ("root", "nobody"):
        with pytest.raises(SandboxError, match="cannot change users"):
            await sandbox.exec("true", timeout=PATIENCE, user=name)
    changes = await sandbox.changes("/srv/app")
    assert [change.path for change in changes.changed] == ["/srv/app/new", "/srv/app/plain.txt"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("local", marks=pytest.mark.local),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def test_an_image_runs_as_its_user_whose_all_files_are(roots: Path, name: str) -> None:
    async def main() -> None:
        opening = open_provider(name, image_roots=[roots], cache=default_cache())
        async with opening as provider, provider.open(SandboxSpec(image=NAME)) as sandbox:
            await look(sandbox)
            snapshot = await sandbox.snapshot()
            async with provider.open(SandboxSpec(image=snapshot.name)) as child:
                seen = await child.exec("id -u; cat new; stat -c %U new", timeout=PATIENCE)
                assert seen.output == "1234\nnew\napp\n"

    try:
        asyncio.run(main())
    except SandboxError as error:
        if error.retryable:
            raise
        missing(f"the {name} provider", str(error))


@pytest.mark.docker
def test_docker_builds_the_same_for_another_user(roots: Path, local_host: LocalHost) -> None:
    store = Store(default_cache(), layer_owner())
    name = f"{NAME}-docker"
    (roots.parent / name / name).mkdir(parents=True)
    (roots.parent / name / name / "Dockerfile").write_text(RECIPE)

    async def main() -> None:
        async with open_docker_build(store, lambda _: None) as docker:
            images = Images([roots.parent / name], default_cache(), run=docker.run)
            with contextlib.closing(images):
                image = await images.ensure(name, base="debian")
                async with open_local(local_host, image, SandboxSpec(image=name)) as sandbox:
                    await look(sandbox)

    asyncio.run(main())


@pytest.mark.local
def test_a_number_needs_no_account_and_a_group_may_be_another(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main(user: str) -> str:
        image = Image(**{**vars(local_image), "user": user})
        async with open_local(local_host, image, SandboxSpec(image="fixture")) as sandbox:
            script = "id -u; id -g; echo x > mine; stat -c '%u %g' mine plain.txt"
            return (await sandbox.exec(script, timeout=PATIENCE)).output

    assert asyncio.run(main("4321")) == "4321\n0\n4321 0\n4321 0\n"
    assert asyncio.run(main("4321:99")) == "4321\n99\n4321 99\n4321 99\n"
    assert asyncio.run(main("root:99")) == "0\n99\n0 99\n0 99\n"
    with pytest.raises(SandboxError, match="runs as USER app: no user 'app' in the image's /etc"):
        asyncio.run(main("app"))


@pytest.mark.local
def test_a_run_step_goes_to_docker_where_no_local_sandbox_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "sandboxes/image").mkdir(parents=True)
    (tmp_path / "sandboxes/image/Dockerfile").write_text("FROM host\nUSER 7\nRUN it\n")
    script = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "sandboxes"), str(tmp_path / "cache")]
    done = subprocess.run(
        [*WITHOUT_NAMESPACES, *script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("7 it\n", "")
