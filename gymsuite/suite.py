"""Where the suite's own content and its cache lie."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from gymsuite.errors import DefinitionError

_cache: ContextVar[Path | None] = ContextVar("gymsuite_cache", default=None)


def suite_root() -> Path:
    """The folder that holds registry.yaml, environments/ and sandboxes/.

    In a checkout that is the project's root, in an installed wheel `gymsuite/_suite`.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_suite", package.parent):
        if (root / "registry.yaml").is_file():
            return root
    raise DefinitionError(f"no registry.yaml beside {package} or in it; install gymsuite again")


def default_cache() -> Path:
    """Where images, indexes and other rebuildable files are kept: the user's cache, or another.

    Another is what the innermost `using_cache` around the caller names.
    """
    return _cache.get() or Path.home() / ".cache" / "gymsuite"


@contextmanager
def using_cache(folder: Path) -> Iterator[None]:
    """Keep rebuildable files in `folder` until the block ends, also in tasks that it starts."""
    token = _cache.set(folder.absolute())
    try:
        yield
    finally:
        _cache.reset(token)


def recipes_folder() -> Path:
    """Where environments write the recipes of images that depend on a user's data."""
    return default_cache() / "recipes"
