"""Opens what judging rows needs, and shows how far it has come."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from gymsuite.cli.counting import counting
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import suite_root
from gymsuite.swe.judge import Judge
from gymsuite.swe.official import fetch_official
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.rows import Row
from gymsuite.swe.supply import Supply

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where sandboxes and images come from."""

    provider: str | None
    cache: Path
    repositories: Path | None
    seconds: float
    strict: bool
    console: Console

    @property
    def recipes(self) -> Path:
        """Where the recipes of images are written."""
        return self.cache / "recipes"


async def with_judge(
    place: Place,
    rows: Sequence[Row],
    total: int,
    go: Callable[[Judge, Callable[[str], None]], Awaitable[T]],
) -> T:
    """Open what judging `rows` needs, and show how far it has come."""
    recipes = Recipes(place.repositories, place.recipes) if place.repositories else None
    roots = (place.recipes, suite_root() / "sandboxes")

    def note(text: str) -> None:
        place.console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    async with open_provider(
        place.provider, image_roots=roots, cache=place.cache, report=note
    ) as opened:
        if recipes is None:
            await fetch_official(rows, place.cache, note)
        judge = Judge.of(
            opened.open,
            Supply(recipes),
            place.cache / "swe",
            seconds=place.seconds,
            strict=place.strict,
        )
        with counting(place.console, "judging") as count:
            count.begin(total)

            def tick(text: str) -> None:
                count.step()
                count.say(text)

            return await go(judge, tick)
