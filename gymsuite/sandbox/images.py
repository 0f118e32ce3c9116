"""Images by name: a folder with a Dockerfile becomes layers on disk, once."""

import asyncio
import contextlib
import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from gymsuite.errors import DefinitionError, SandboxError
from gymsuite.sandbox.base import Base
from gymsuite.sandbox.build import Builder, build
from gymsuite.sandbox.debian import DEFAULT_RELEASE, debian_base
from gymsuite.sandbox.dockerfile import Recipe, parse
from gymsuite.sandbox.host import host_base
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_build
from gymsuite.sandbox.localhost import UNPRIVILEGED
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.trees import Owner

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")  # what Docker takes, too
_DEBIAN = re.compile(r"debian(?::([a-z]+))?")
_STEP_SECONDS = 1800.0
# A layer is no place for the downloads that pip would keep for a next time.
_BUILD_ENV = {"PIP_NO_CACHE_DIR": "1", "PIP_ROOT_USER_ACTION": "ignore"}


class Images:
    """Finds images below some roots and builds them into a cache; `close` gives them up.

    `host` runs RUN steps; one is found when a step needs it and none is given.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        cache: Path,
        *,
        report: Report = lambda _: None,
        host: LocalHost | None = None,
    ) -> None:
        owner = Owner(UNPRIVILEGED, UNPRIVILEGED) if os.geteuid() == 0 else None
        self.store = Store(cache.absolute(), owner)
        self._roots = tuple(roots)
        self._report = report
        self._host = host
        self._held = contextlib.ExitStack()
        self._done: dict[tuple[str, str], Image | DefinitionError] = {}
        self._lock = asyncio.Lock()

    def close(self) -> None:
        """Let others remove the layers of the images that were ensured."""
        self._done.clear()
        self._held.close()

    async def ensure(self, name: str, *, base: str) -> Image:
        """Return an image, built first if need be; `base` fills its `ARG BASE`.

        Raises `DefinitionError` for an image that does not exist or cannot be built, also when it
        is asked for again, and `SandboxError` where this machine cannot build it.
        """
        key = name, base
        if key not in self._done:
            async with self._lock:
                if key not in self._done:
                    self._done[key] = await self._build(name, base)
        done = self._done[key]
        if isinstance(done, DefinitionError):
            raise DefinitionError(str(done)) from done
        return done

    async def _build(self, name: str, base: str) -> Image | DefinitionError:
        builder = Builder(self.store, self._run, self._report, self._held)
        try:
            recipe = parse(self._find(name), {"BASE": base})
            return await build(builder, name, recipe, self._base(recipe))
        except DefinitionError as error:
            return error

    def _find(self, name: str) -> Path:
        if _NAME.fullmatch(name):
            for root in self._roots:
                path = root / name / "Dockerfile"
                if path.is_file():
                    return path
        known = sorted({p.parent.name for root in self._roots for p in root.glob("*/Dockerfile")})
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'none'}"
        )
        where = ", ".join(map(str, self._roots)) or "no folder"
        raise DefinitionError(f"no image {name!r} (a folder with a Dockerfile) in {where}; {hint}")

    def _base(self, recipe: Recipe) -> Base:
        if recipe.base == "host":
            return host_base()
        debian = _DEBIAN.fullmatch(recipe.base)
        if debian is None:
            raise recipe.error(
                recipe.base_line,
                f"FROM {recipe.base}: images start from host, debian or debian:RELEASE"
                f" (debian:{DEFAULT_RELEASE})",
            )
        return debian_base(debian[1] or DEFAULT_RELEASE, self._report)

    async def _run(self, image: Image, command: str, tree: Path) -> ExecResult:
        host = await self._local()
        async with open_build(host, image, env=_BUILD_ENV, network=True) as sandbox:
            result = await sandbox.exec(command, timeout=_STEP_SECONDS)
            if result.exit_code == 0 and not result.timed_out:
                changed = await sandbox.freeze()
                await asyncio.to_thread(changed.rename, tree)
        return result

    async def _local(self) -> LocalHost:
        if self._host is None:
            try:
                self._host = await asyncio.to_thread(LocalHost.probe, self.store.cache)
            except SandboxError as error:
                message = f"an image's RUN steps run in a local sandbox: {error}"
                raise SandboxError(message, retryable=False) from error
            self._held.callback(self._host.close)
        return self._host
