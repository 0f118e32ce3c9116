"""Opens the index of a corpus: built once per machine, shared by every process and episode."""

import asyncio
import contextlib
import functools
import hashlib
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from gymsuite.errors import InfrastructureError
from gymsuite.sandbox.locks import exclusive
from gymsuite.search.corpus import Corpus, digest, ordered_lines
from gymsuite.search.progress import Progress, silent
from gymsuite.search.retriever import Retriever
from gymsuite.tools import Context


class Library:
    """A corpus and its index below `cache`; opened on first need, and open as long as it lives.

    An index lies in a folder named by what it was made of, so a changed corpus is another folder
    and nothing is ever rebuilt in place.
    """

    def __init__(
        self, corpus: Corpus, cache: Callable[[], Path], *, progress: Progress = silent
    ) -> None:
        self.corpus = corpus
        self._cache = cache
        self._progress = progress
        self._retriever: Retriever | None = None

    async def open(self) -> Retriever:
        """The retriever over the corpus, built now if this machine has none yet.

        Raises `DefinitionError` for a corpus that is broken or not the one that was pinned, and
        `UsageError` where the extra `search` is not installed, and `InfrastructureError` where the
        index cannot be written.
        """
        if self._retriever is None:
            from gymsuite.search.index import Index  # noqa: PLC0415 - needs the extra `search`

            self._retriever = Index(await self._folder())
        return self._retriever

    async def of(self, _: Context) -> Retriever:
        """The same for every episode."""
        return await self.open()

    async def _folder(self) -> Path:
        from gymsuite.search.index import LAYOUT  # noqa: PLC0415 - as above

        root = self._cache() / "search"
        lines: list[bytes] | None = None
        key = self.corpus.digest
        if not key:
            lines = await asyncio.to_thread(ordered_lines, self.corpus)
            key = digest(lines)
        folder = root / hashlib.sha256(f"{LAYOUT}|{key}".encode()).hexdigest()[:32]
        if folder.is_dir():
            return folder
        lock = await exclusive(folder.with_suffix(".lock"), waiting=lambda: None)
        try:
            if not folder.is_dir():
                if lines is None:
                    lines = await asyncio.to_thread(ordered_lines, self.corpus)
                build = functools.partial(_build, folder, lines, self._progress)
                with _writing(root):
                    await asyncio.to_thread(build)
        finally:
            lock.close()
        return folder


@contextlib.contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Tell a machine that cannot write from an author's mistake."""
    try:
        yield
    except (OSError, ValueError) as error:  # tantivy makes a ValueError of what the disk says
        raise InfrastructureError(
            f"cannot write an index below {root}: {error}; make room, or name another cache",
            retryable=False,
        ) from error


def _build(folder: Path, lines: list[bytes], progress: Progress) -> None:
    """Build aside and rename, so that a folder that exists is whole."""
    from gymsuite.search.index import build_index  # noqa: PLC0415 - as above

    aside = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
    aside.mkdir(parents=True)
    try:
        build_index(aside, lines, progress)
        aside.rename(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            shutil.rmtree(aside)
        raise
