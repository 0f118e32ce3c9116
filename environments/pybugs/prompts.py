"""Writes the issue report that a task begins with, in one of several voices."""

import random
from collections.abc import Sequence

from .symptoms import UNNAMED, Symptom

_OPENINGS = (
    "There seems to be a bug in {library} {version}: {topic} goes wrong.",
    "I use {library} {version}, and {topic} does not work as it should.",
    "Since an upgrade to {library} {version} our own tests fail. The cause: {topic}.",
    "Bug report for {library} {version}.\n\nWhat I was doing: {topic}.",
    "In {library} {version} this is broken: {topic}.",
)
_OPENINGS_OF_TWO = (
    "Two things go wrong in {library} {version}: {topic}, and {other}.",
    "I found two bugs in {library} {version}. One is in {topic}, the other in {other}.",
    "Bug report for {library} {version}.\n\nWhat I was doing: {topic}; and, separately, {other}.",
)
_CLOSINGS = (
    "Please find the cause and repair it in the library itself.",
    "Could you look into it? The rest of the library should go on working as it does.",
    "It should be repaired in the library, without breaking what works now.",
    "A repair in the library's own source would be welcome; its behaviour is otherwise fine.",
)
_HINT = f"(I write `{UNNAMED}` for the call that I mean.)"
_FORMS = (
    "- `{done}` gives `{wrong}`; I expected `{right}`.",
    "- For `{done}` I see `{wrong}`, and it should be `{right}`.",
    "- `{done}`: expected `{right}`, but there came `{wrong}`.",
)


def write_prompt(
    library: str, version: str, topics: Sequence[str], symptoms: Sequence[Symptom], seed: str
) -> str:
    """Compose a report; the same arguments give the same text."""
    voice = random.Random(seed)
    topic, *others = topics
    opening = voice.choice(_OPENINGS_OF_TWO if others else _OPENINGS).format(
        library=library, version=version, topic=topic, other="; ".join(others)
    )
    lines = [_line(symptom, voice) for symptom in symptoms]
    hint = _HINT if any(UNNAMED in symptom.done for symptom in symptoms) else ""
    parts = [opening, "For example:", "\n".join(lines), hint, voice.choice(_CLOSINGS)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(symptom: Symptom, voice: random.Random) -> str:
    done, wrong, right, raised = symptom
    if wrong == "no error":
        return f"- `{done}` is accepted without an error; it should be refused with `{right}`."
    if right in {"true", "false"}:
        return f"- `{done}` should be {right}, and it is not."
    if raised:
        wish = f"; it should give `{right}`" if right else ""
        return f"- `{done}` fails with `{wrong}`{wish}."
    return voice.choice(_FORMS).format(done=done, wrong=wrong, right=right)
