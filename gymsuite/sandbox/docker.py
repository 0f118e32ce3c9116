"""The Docker Engine, awaited: every call has a deadline and a typed error.

docker-py blocks: its calls run in threads. A thread cannot be stopped, so
a cancelled caller waits for its call first; otherwise a container could appear after its removal.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from docker.api import APIClient
from docker.errors import APIError, DockerException, NotFound

from gymsuite.errors import SandboxError
from gymsuite.sandbox import containercalls, dockerclient
from gymsuite.sandbox.engine import (
    Capabilities,
    Container,
    ImageMissing,
    NameTaken,
    Started,
    Wish,
)
from gymsuite.sandbox.threads import in_thread

_CALL_SECONDS = 120.0
_IMPORT_SECONDS = 1800.0
_CONFLICT = 409

T = TypeVar("T")


class Engine:
    """One Docker Engine."""

    def __init__(self, client: APIClient, address: str, within: float) -> None:
        self._client = client
        self._address = address
        self._within = within
        self._calls = asyncio.Semaphore(dockerclient.CALLS_AT_ONCE)

    async def capabilities(self) -> Capabilities:
        """Ask what the Engine enforces."""
        info = await self._call("say what it can do", self._client.info)
        return Capabilities(
            bool(info.get("MemoryLimit")),
            bool(info.get("CpuCfsQuota")),
            bool(info.get("PidsLimit")),
            int(info.get("NCPU") or 1),
            tuple(sorted(info.get("Runtimes") or ())),
        )

    async def has_image(self, tag: str) -> bool:
        """Whether an image with this tag is there."""

        def inspect() -> bool:
            try:
                self._client.inspect_image(tag)  # type: ignore[no-untyped-call]  # the stubs' gap
            except NotFound:
                return False
            return True

        return await self._call(f"inspect image {tag}", inspect)

    async def import_image(self, tag: str, tar: Iterator[bytes]) -> None:
        """Make an image of a tar stream."""
        name, _, version = tag.rpartition(":")

        def load() -> None:
            self._client.import_image_from_stream(tar, name, version)

        await self._call(f"import image {tag}", load, within=_IMPORT_SECONDS)
        # The Engine says that all is well before it has read the stream.
        if not await self.has_image(tag):
            raise SandboxError(f"Docker took image {tag} and does not have it; is its disk full?")

    async def start(self, wish: Wish) -> Started:
        """Create a container, connect to its first process, and start it.

        The container may be there when this raises: remove it by its name. Only after `NameTaken`
        there is another's. Raises `ImageMissing`, too.
        """
        made: list[socket.socket] = []

        def start() -> Started:
            number = containercalls.create(self._client, wish)
            connection = containercalls.attach(self._client, number)
            made.append(connection)
            self._client.start(number)
            return Started(number, connection)

        try:
            return await self._call(f"start a container of {wish.image}", start)
        except BaseException:
            # A cancelled caller never sees the connection that was made for it.
            for connection in made:
                connection.close()
            raise

    async def first_process(self, container: str) -> int:
        """Ask for the process id, outside, of what a container runs."""
        inspect = self._client.inspect_container
        found = await self._call("inspect a container", lambda: inspect(container))
        return int(found["State"]["Pid"])

    async def rename(self, container: str, name: str) -> None:
        """Give a container, by its id, another name."""
        what = f"rename container {container[:12]}"
        await self._call(what, lambda: self._client.rename(container, name))

    async def remove(self, container: str) -> None:
        """Remove a container by its id or name, whatever its state, and see it gone. Idempotent."""
        await self._call(
            f"remove container {container}", lambda: containercalls.remove(self._client, container)
        )

    async def containers(self, label: str) -> list[Container]:
        """All containers that carry a label."""

        def find() -> list[Container]:
            found = self._client.containers(all=True, filters={"label": label})
            return [
                Container(str(one["Names"][0]).lstrip("/"), one["Labels"], str(one["State"]))
                for one in found
                if one["Names"]
            ]

        return await self._call("list containers", find)

    async def is_settled(self, name: str, prefix: str, labels: Mapping[str, str]) -> bool:
        """Whether a container that somebody asked for is there, or will never be.

        Who asked is dead, and it may be in the making. Its name is taken then, so to take it
        ourselves for a moment, with an image of some prefix, is to know.
        """
        tags = await self.images(prefix)

        def settled() -> bool:
            try:
                containercalls.claim(self._client, name, tags[0], labels)
            except NameTaken:
                return containercalls.is_there(self._client, name)
            except ImageMissing:
                return False
            return True

        return not tags or await self._call(f"see what became of container {name}", settled)

    async def images(self, prefix: str) -> list[str]:
        """All tags that begin with a prefix."""

        def find() -> list[str]:
            found = self._client.images()
            tags = [str(tag) for one in found for tag in one["RepoTags"] or ()]
            return [tag for tag in tags if tag.startswith(prefix)]

        return await self._call("list images", find)

    async def labelled_images(self, label: str) -> list[tuple[str, str]]:
        """All images that carry a label, by their ids, with what it says."""

        def find() -> list[tuple[str, str]]:
            found = self._client.images(filters={"label": label})
            return [(str(one["Id"]), str(one["Labels"][label])) for one in found]

        return await self._call("list images", find)

    async def remove_image(self, tag: str) -> bool:
        """Remove an image, by a tag or its id, and say whether it is gone.

        It stays where a container runs it.
        """

        def remove() -> bool:
            try:
                self._client.remove_image(tag)
            except NotFound:
                return True
            except APIError as error:
                if error.status_code != _CONFLICT:
                    raise
                return False
            return True

        return await self._call(f"remove image {tag}", remove)

    async def ask(
        self, what: str, function: Callable[[APIClient], T], *, within: float | None = None
    ) -> T:
        """Ask the Engine for what only one caller needs, with a deadline like the rest."""
        return await self._call(what, lambda: function(self._client), within=within)

    async def _call(
        self, what: str, function: Callable[[], T], *, within: float | None = None
    ) -> T:
        seconds = self._within if within is None else within

        def knocked() -> T:
            dockerclient.knock(self._address)
            return function()

        async with self._calls:
            work = in_thread(knocked)
            try:
                async with asyncio.timeout(seconds):
                    return await asyncio.shield(work)
            except asyncio.CancelledError:
                await asyncio.wait([work], timeout=seconds)
                raise
            except TimeoutError as error:
                raise SandboxError(f"Docker did not {what} in {seconds:g} seconds") from error
            except (DockerException, OSError) as error:
                raise SandboxError(f"Docker cannot {what}: {error}") from error


@asynccontextmanager
async def connect(*, within: float = _CALL_SECONDS) -> AsyncIterator[Engine]:
    """Connect to the Engine that DOCKER_HOST and its like name, or else this machine's.

    `within` is how long a call may take, but for the import of an image. Raises `SandboxError`
    that names the way out.
    """
    try:
        async with asyncio.timeout(within):
            client, address = await in_thread(lambda: dockerclient.find(within))
    except (DockerException, OSError) as error:
        raise SandboxError(dockerclient.complaint(error), retryable=False) from error
    try:
        yield Engine(client, address, within)
    finally:
        client.close()
