"""One image, two providers: what commands see of it is the same, whoever built it."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from docker.client import DockerClient
from docker.errors import DockerException

from gymsuite import SandboxSpec
from gymsuite.errors import DefinitionError, SandboxError
from gymsuite.sandbox.base import ENV
from gymsuite.sandbox.collecting import clean
from gymsuite.sandbox.dockerbuild import open_docker_build
from gymsuite.sandbox.dockerhost import tag_of
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.importing import Import, forget, import_image
from gymsuite.sandbox.layers import walk
from gymsuite.sandbox.local import LocalHost, open_local
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.reaper import IMAGE_PREFIX
from gymsuite.sandbox.store import Store
from gymsuite.suite import default_cache, suite_root
from tests.image_archives import docker_save, file, folder, layer

from .conftest import missing

pytestmark = [pytest.mark.local, pytest.mark.docker]

PATIENCE = 60.0
NAME = f"same-{os.getpid()}"
LOW = """\
FROM debian
ARG GREETING=hello
ENV GREETING=$GREETING SPACED="two  words" PATH=/opt/tools:$PATH
WORKDIR /srv/app
COPY --chmod=750 tool /opt/tools/
COPY tree .
"""
HIGH = f"""\
FROM {NAME}-low
RUN echo "$GREETING" > made && cp made /opt/one && ln /opt/one /opt/other \\
    && ln -s made soft && chmod 600 tree.txt && rm -r sub/gone /etc/issue \\
    && mkdir -m 1777 /opt/shared && rm -r /mnt && mkdir /mnt \\
    && touch -d @1000000 /opt/old && mv plain.txt moved.txt
RUN ["touch", "two words"]
"""
FACTS = """\
pwd; echo "$GREETING/$SPACED/$PATH/$HOME/$LANG"; id -u
tool; cat made; ls -A . sub /opt /opt/shared /mnt; readlink soft
test /opt/one -ef /opt/other && echo one file
stat -c '%a %F %n' /srv/app /srv/app/* /opt/tools /opt/tools/tool /opt/shared /tmp /root /mnt
stat -c '%Y' /opt/old; ls /etc/issue; cat moved.txt tree.txt
python3 -c 'import sys; print(sys.version_info[:3])'
"""


class Seen(NamedTuple):
    """What commands in a sandbox printed."""

    image: Image
    output: str


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("sandboxes")
    for name, text in ((f"{NAME}-low", LOW), (NAME, HIGH)):
        (root / name).mkdir()
        (root / name / "Dockerfile").write_text(text)
    low = root / f"{NAME}-low"
    (low / "tool").write_text("#!/bin/sh\necho tool ran\n")
    (low / "tree/sub/gone").mkdir(parents=True)
    for path in ("plain.txt", "tree.txt", "sub/gone/x", "sub/kept"):
        (low / "tree" / path).write_text(f"{path}\n")
    (low / "tree/to-sub").symlink_to("sub")
    yield root
    clean(default_cache(), keep=lambda image: not image.name.startswith(NAME))
    for empty in (default_cache() / "images").glob(f"{NAME}*"):
        empty.rmdir()
    with (
        contextlib.suppress(DockerException),
        contextlib.closing(DockerClient.from_env()) as client,
    ):
        tags = [tag for one in client.api.images() for tag in one["RepoTags"] or ()]
        for tag in tags:
            if tag.startswith(f"{IMAGE_PREFIX}{NAME}"):
                client.api.remove_image(tag)


def seen(roots: Path, provider: str, name: str = NAME, facts: str = FACTS) -> Seen:
    async def main() -> Seen:
        opening = open_provider(provider, image_roots=[roots], cache=default_cache())
        async with opening as opened:
            image = await opened.ensure(name)
            async with opened.open(SandboxSpec(image=name)) as sandbox:
                result = await sandbox.exec(facts, timeout=PATIENCE)
                return Seen(image, result.output)

    try:
        return asyncio.run(main())
    except SandboxError as error:
        if error.retryable:
            raise
        missing(f"the {provider} provider", str(error))
        raise


def test_commands_see_the_same_of_an_image_in_both_providers(roots: Path) -> None:
    local, docker = (seen(roots, provider) for provider in ("local:debian", "docker"))
    assert local.image == docker.image
    assert local.output.splitlines() == docker.output.splitlines()
    lines = local.output.splitlines()
    assert lines[:3] == [
        "/srv/app",
        f"hello/two  words//opt/tools:{ENV['PATH']}//root/C.UTF-8",
        "0",
    ]
    assert lines[3:5] == ["tool ran", "hello"]
    for fact in (
        "one file",
        "two words",
        "750 regular file /opt/tools/tool",
        "600 regular file /srv/app/tree.txt",
        "777 symbolic link /srv/app/soft",
        "777 symbolic link /srv/app/to-sub",
        "1777 directory /opt/shared",
        "1000000",
        "plain.txt",
        "ls: cannot access '/etc/issue': No such file or directory",
    ):
        assert fact in lines, fact
    assert "gone" not in lines


def test_docker_builds_the_layers_that_a_local_sandbox_builds(
    roots: Path, local_host: LocalHost
) -> None:
    store = Store(default_cache(), None)

    async def by_docker(folder: Path) -> Image:
        async with open_docker_build(store, lambda _: None) as docker:
            images = Images([folder], default_cache(), run=docker.run)
            with contextlib.closing(images):
                return await images.ensure(f"{NAME}-docker", base="debian")

    async def by_sandbox(folder: Path) -> Image:
        images = Images([folder], default_cache(), host=local_host)
        with contextlib.closing(images):
            return await images.ensure(f"{NAME}-local", base="debian")

    shown = []
    for name, build in ((f"{NAME}-docker", by_docker), (f"{NAME}-local", by_sandbox)):
        folder = roots.parent / name
        (folder / name).mkdir(parents=True)
        step = (
            f": {name}; id -u > /opt/who; rm -r /mnt /etc/issue; ln /opt/who /srv/hard;"
            " chmod 711 /srv"
        )
        (folder / name / "Dockerfile").write_text(f"FROM debian\nRUN {step}\n")
        try:
            image = asyncio.run(build(folder))
        except SandboxError as error:
            missing("a builder", str(error))
            raise
        top = image.layers[-1]
        shown.append(
            [
                (path, oct(entry.status.st_mode), entry.status.st_uid, entry.status.st_nlink)
                for path, entry in walk(image.layers)
                if entry.path.is_relative_to(top)
            ]
            + sorted(str(path.relative_to(top)) for path in top.rglob("*"))
        )
    assert shown[0] == shown[1]
    assert shown[0][-4:] == ["opt", "opt/who", "srv", "srv/hard"]


def test_the_kernel_hides_what_an_imported_layer_deletes(
    roots: Path, local_host: LocalHost, tmp_path: Path
) -> None:
    low = layer(
        folder("opt"), file("opt/kept"), file("opt/gone"), folder("opt/new"), file("opt/new/old")
    )
    high = layer(
        folder("opt"), file("opt/.wh.gone"), folder("opt/new"), file("opt/new/.wh..wh..opq"),
        file("opt/new/new"), folder("opt/both"), file("opt/.wh.both"), file("etc/.wh.issue"),
    )  # fmt: skip
    saved, name = docker_save(tmp_path / "saved.tar", [low, high]), f"{NAME}-layers"

    async def main() -> str:
        images = Images([suite_root() / "sandboxes"], default_cache(), host=local_host)
        with contextlib.closing(images):
            base = await images.ensure("base", base="debian")
            top = await import_image(images.store, Import(saved, name), lambda _: None)
            image = replace(base, layers=(*base.layers, *top.layers))
            async with open_local(local_host, image, SandboxSpec(image=name)) as sandbox:
                return (
                    await sandbox.exec("cd /opt; find . | sort; ls /etc/issue", timeout=60)
                ).output

    try:
        output = asyncio.run(main())
    finally:
        forget(Store(default_cache(), None), name)
    assert output.split("\n")[:5] == [".", "./both", "./kept", "./new", "./new/new"]
    assert "cannot access '/etc/issue'" in output


def test_docker_builds_nothing_on_the_host_base(roots: Path) -> None:
    (roots / f"{NAME}-host").mkdir()
    (roots / f"{NAME}-host/Dockerfile").write_text("FROM host\nRUN true\n")

    async def main() -> None:
        async with open_docker_build(Store(default_cache(), None), lambda _: None) as docker:
            images = Images([roots], default_cache(), run=docker.run)
            with contextlib.closing(images):
                await images.ensure(f"{NAME}-host", base="debian")

    with pytest.raises(DefinitionError, match="starts FROM host, .* Docker cannot run"):
        asyncio.run(main())


def test_an_image_that_docker_saved_is_imported_the_same(roots: Path, tmp_path: Path) -> None:
    built = seen(roots, "docker")
    saved, name = tmp_path / "saved.tar", f"{NAME}-saved"
    with contextlib.closing(DockerClient.from_env()) as client, saved.open("wb") as archive:
        archive.writelines(client.api.get_image(tag_of(built.image)))
    store = Images([], default_cache()).store
    asyncio.run(import_image(store, Import(saved, name), lambda _: None))
    again = roots / f"{NAME}-again"
    again.mkdir()
    # Docker was given no settings with the files, so none come back.
    settings = LOW.splitlines()[1:4]
    (again / "Dockerfile").write_text("\n".join([f"FROM {name}", *settings]))
    try:
        for provider in ("local", "docker"):
            found = seen(roots, provider, again.name).output
            assert found.splitlines() == built.output.splitlines()
    finally:
        forget(store, name)
