"""Where the suite's own content and its cache lie."""

from pathlib import Path

from gymsuite.errors import DefinitionError


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
    """Where images and other rebuildable files are kept unless the caller says otherwise."""
    return Path.home() / ".cache" / "gymsuite"


def recipes_folder() -> Path:
    """Where environments write the recipes of images that depend on a user's data."""
    return default_cache() / "recipes"
