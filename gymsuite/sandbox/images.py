"""Images by name: a folder with a Dockerfile becomes layers on disk, once; or one was imported."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from gymsuite.errors import DefinitionError, SandboxError, UsageError
from gymsuite.sandbox import folders
from gymsuite.sandbox.base import Base
from gymsuite.sandbox.build import Builder, RunCommand, build
from gymsuite.sandbox.debian import DEFAULT_RELEASE, debian_base, unknown_release
from gymsuite.sandbox.disk import is_full
from gymsuite.sandbox.dockerfile import parse
from gymsuite.sandbox.host import host_base
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_build
from gymsuite.sandbox.localhost import UNPRIVILEGED, gives_up_root
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.recipe import Arguments, Recipe
from gymsuite.sandbox.records import ImageRecord, image_of, imported, records
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.trees import Owner

_DEBIAN = re.compile(r"debian(?::([a-z]+))?")
_STEP_SECONDS = 1800.0
# A layer is no place for the downloads that pip would keep for a next time.
BUILD_ENV = MappingProxyType({"PIP_NO_CACHE_DIR": "1", "PIP_ROOT_USER_ACTION": "ignore"})
"""What RUN steps see beside the image's own variables."""

_NONE: Arguments = MappingProxyType({})


class Images:
    """Finds images below some roots and builds them into a cache; `close` gives them up.

    RUN steps go through `run`, or else run in sandboxes of `host`, which is found when a step
    needs it; what no local sandbox can do goes through `otherwise`.
    """

    def __init__(  # noqa: PLR0913 - most callers need three
        self,
        roots: Sequence[Path],
        cache: Path,
        *,
        report: Report = lambda _: None,
        host: LocalHost | None = None,
        run: RunCommand | None = None,
        otherwise: RunCommand | None = None,
    ) -> None:
        self.store = Store(cache.absolute(), layer_owner())
        self._roots = tuple(roots)
        self._report = report
        self._host = host
        self._run = run or self._run_locally
        self._otherwise = otherwise
        self._held = contextlib.ExitStack()
        self._done: dict[tuple[str, ...], Image | DefinitionError] = {}
        self._lock = asyncio.Lock()

    def close(self) -> None:
        """Let others remove the layers of the images that were ensured."""
        self._done.clear()
        self._held.close()

    async def ensure(self, name: str, *, base: str, arguments: Arguments = _NONE) -> Image:
        """Return an image, built first if need be; `base` fills its `ARG BASE`.

        Raises `DefinitionError` for an image that does not exist or cannot be built, also when it
        is asked for again, `UsageError` for arguments that it does not declare, and `SandboxError`
        where this machine cannot build it.
        """
        key = (name, base, *(part for pair in sorted(arguments.items()) for part in pair))
        if key not in self._done:
            async with self._lock:
                if key not in self._done:
                    self._done[key] = await self._find_or_build(name, {**arguments, "BASE": base})
                    await self.store.keep_to_limit(self._report)
        done = self._done[key]
        if isinstance(done, DefinitionError):
            raise DefinitionError(str(done)) from done
        return done

    async def _find_or_build(self, name: str, arguments: Arguments) -> Image | DefinitionError:
        try:
            return await self._build(name, arguments, ())
        except DefinitionError as error:
            return error

    async def _build(self, name: str, arguments: Arguments, above: tuple[str, ...]) -> Image:
        """Build an image, and first the one that it starts FROM; `above` start from this one."""
        path = folders.find(self._roots, name)
        record = imported(self.store.cache, name)
        if record is not None:
            if path is not None:
                raise DefinitionError(
                    f"image {name!r} is the folder {path.parent}, and one was imported under that"
                    f" name, too; `gymsuite sandbox remove {name}` forgets the imported one"
                )
            if given := sorted(arguments.keys() - {"BASE"}):
                raise UsageError(f"image {name!r} was imported, and takes no argument {given[0]}")
            return await self._open(record)
        if path is None:
            names = (one.name for _, one in records(self.store.cache) if one.origin == "imported")
            raise folders.unknown(self._roots, names, name)
        recipe = parse(path, arguments)
        if undeclared := sorted(arguments.keys() - recipe.declared - {"BASE"}):
            known = ", ".join(sorted(recipe.declared)) or "none"
            raise UsageError(f"{path} has no ARG {undeclared[0]}; there are: {known}")
        start = await self._start(recipe, arguments["BASE"], (*above, name))
        builder = Builder(self.store, self._run, self._report, self._held)
        return await build(builder, name, recipe, start)

    async def _start(self, recipe: Recipe, base: str, above: tuple[str, ...]) -> Base | Image:
        name = recipe.base
        if name == "host":
            return host_base()
        if debian := _DEBIAN.fullmatch(name):
            release = debian[1] or DEFAULT_RELEASE
            if wrong := unknown_release(release):
                raise recipe.error(recipe.base_line, f"FROM {name}: {wrong}")
            return debian_base(release, self._report)
        if name in above:
            circle = " -> ".join((*above[above.index(name) :], name))
            message = f"FROM {name}: these images start from each other: {circle}"
            raise recipe.error(recipe.base_line, message)
        try:
            return await self._build(name, {"BASE": base}, above)
        except DefinitionError as error:
            if folders.find(self._roots, name) or imported(self.store.cache, name):
                raise
            raise recipe.error(
                recipe.base_line,
                f"FROM {name}: images start from host, debian, debian:RELEASE"
                f" (debian:{DEFAULT_RELEASE}) or another image of ours, which `gymsuite sandbox"
                f" import` may bring in: {error}",
            ) from error

    async def _open(self, record: ImageRecord) -> Image:
        """Hold the layers of an imported image."""
        for digest in record.layers:

            async def gone(_: Path) -> str:
                raise DefinitionError(
                    f"a layer of the imported image {record.name!r} is gone; import it again"
                )

            lock = await self.store.ensure(digest, record.name, gone, self._report)
            self._held.callback(lock.close)
        self.store.record(record)
        return image_of(self.store.cache, record)

    async def _run_locally(
        self, image: Image, command: str | Sequence[str], tree: Path
    ) -> ExecResult:
        if self._otherwise is not None and not await self._has_local():
            return await self._otherwise(image, command, tree)
        host = await self._local()
        async with open_build(host, image, env=BUILD_ENV, network=True) as sandbox:
            result = await sandbox.exec(command, timeout=_STEP_SECONDS)
            if result.exit_code != 0 and is_full(self.store.cache):
                return result._replace(disk_full=True)
            if result.exit_code == 0 and not result.timed_out:
                changed = await sandbox.freeze()
                await asyncio.to_thread(changed.rename, tree)
        return result

    async def _has_local(self) -> bool:
        try:
            await self._local()
        except SandboxError:
            return False
        return True

    async def _local(self) -> LocalHost:
        if self._host is None:
            try:
                self._host = await asyncio.to_thread(LocalHost.probe, self.store.cache)
            except SandboxError as error:
                message = (
                    f"an image's RUN steps run in a local sandbox: {error}. Or build it by"
                    " `gymsuite sandbox build NAME --provider docker`"
                )
                raise SandboxError(message, retryable=False) from error
            self._held.callback(self._host.close)
        return self._host


def layer_owner() -> Owner | None:
    """Whom layers belong to: None leaves files their maker's."""
    return Owner(UNPRIVILEGED, UNPRIVILEGED) if gives_up_root() else None
