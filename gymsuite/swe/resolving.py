"""Finds a data set's names of tests among the results of a run.

The names are what some parser once made of a log: cut at a space, with a time in them, or no test's
at all (`[100%]`). A name is looked up as it is, then as a key of SWE-bench's, among the strays, by
its folded form, and last as the beginning of a name whose bracket it does not close. Where several
tests share a name, the worst of them counts.
"""

from gymsuite.swe.parsers.results import Parsed, worst
from gymsuite.swe.parsers.text import folded


class Names:
    """The results of one run, to be asked for by a data set's names."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self._folded: dict[str, list[str]] = {}
        for name in parsed.statuses:
            self._folded.setdefault(folded(name), []).append(name)
        self._notes: dict[str, None] = {}

    def status(self, name: str) -> str | None:
        """The status of a named test; None if nothing says what came of it."""
        statuses = self._parsed.statuses
        if name in statuses:
            return statuses[name]
        if name in self._parsed.keys:
            return self._worst(name, self._parsed.keys[name])
        if name in self._parsed.strays:
            self._note(f"{name!r} is no test's name: it stands somewhere in the log")
            return self._parsed.strays[name]
        if same := self._folded.get(folded(name)):
            return self._worst(name, tuple(same))
        if name.count("[") > name.count("]"):
            return self._worst(name, tuple(each for each in statuses if each.startswith(name)))
        return None

    def notes(self) -> tuple[str, ...]:
        """What was remarkable about the names that were asked for."""
        return tuple(self._notes)

    def _worst(self, name: str, candidates: tuple[str, ...]) -> str | None:
        if not candidates:
            return None
        found = {self._parsed.statuses[each] for each in candidates}
        if len(found) > 1:
            self._note(
                f"{name!r} is the name of {len(candidates)} tests with different results; "
                "the worst counts"
            )
        return worst(found)

    def _note(self, text: str) -> None:
        self._notes[text] = None
