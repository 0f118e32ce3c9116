"""Where a row's image comes from: made of a local clone, or upstream's own."""

import re
from dataclasses import dataclass

from gymsuite.errors import DefinitionError
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.rows import Row
from gymsuite.types import SandboxSpec

_CPUS = 2.0
_MEMORY_BYTES = 4 << 30
_PROCESSES = 1024


@dataclass(frozen=True)
class Supply:
    """Says which image a row's sandboxes start from.

    Without `recipes` it is the image that the row names, imported from Docker.
    """

    recipes: Recipes | None = None

    def label(self, row: Row) -> str:
        """What tells the image from others; "" where it cannot be told what is in it."""
        try:
            return self.recipes.name(row) if self.recipes else row.image
        except DefinitionError:
            return ""

    def ready(self, row: Row) -> str:
        """The image's name, once a recipe for it is written where one is needed."""
        return self.recipes.write(row) if self.recipes else official_name(row)

    def spec(self, row: Row) -> SandboxSpec:
        """The sandbox that a row's patches are made and judged in."""
        return SandboxSpec(
            image=self.ready(row),
            workdir=row.workdir,
            cpus=_CPUS,
            memory_bytes=_MEMORY_BYTES,
            pids=_PROCESSES,
        )


def official_name(row: Row) -> str:
    """What the image that a row names is called here; raises `DefinitionError` if it names none."""
    if not row.image:
        raise DefinitionError(
            f"{row.instance_id} names no image; give a folder of clones to build one: --repo-dir"
        )
    return "official-" + re.sub(r"[^a-z0-9]+", "-", row.image.lower()).strip("-")
