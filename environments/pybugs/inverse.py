"""Edits that lead from one text to another, as a tool takes them: a unique `old`, and a `new`."""

import difflib
from collections.abc import Iterator

from gymsuite.errors import DefinitionError


def inverse_edits(broken: bytes, fixed: bytes) -> Iterator[tuple[str, str]]:
    """Yield (old, new) for each place that differs; applied in order they give `fixed`."""
    text, wanted = broken.decode(), fixed.decode()
    while text != wanted:
        old, new = _first_edit(text, wanted)
        text = text.replace(old, new)
        yield old, new


def _first_edit(text: str, wanted: str) -> tuple[str, str]:
    old, new = (t.splitlines(keepends=True) for t in (text, wanted))
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    _, start, end, new_start, new_end = next(block for block in blocks if block[0] != "equal")
    for context in range(len(old)):
        above, below = max(0, start - context), end + context
        before = "".join(old[above:below])
        if before and text.count(before) == 1:
            pieces = [*old[above:start], *new[new_start:new_end], *old[end:below]]
            return before, "".join(pieces)
    raise DefinitionError(f"no unique text around line {start + 1}")
