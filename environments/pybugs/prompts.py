"""Writes the issue report that a task begins with, in one of several voices."""

import random
from collections.abc import Sequence

from .symptoms import UNNAMED, Symptom

_OPENINGS = (
    "There seems to be a bug in {library} {version}: {topic} goes wrong.",
    "I use {library} {version}, and {topic} does not do what it should.",
    "Since an upgrade to {library} {version} our tests fail: {topic} is broken.",
    "Bug report for {library} {version}.\n\nWhat I was doing: {topic}.",
    "With {library} {version}, {topic} gives wrong results.",
)
_CLOSINGS = (
    "Please find the cause and repair it in the library itself.",
    "Could you look into it? The rest of the library should go on working as it does.",
    "It should be repaired in the library, without breaking what works now.",
    "A repair in the library's own source would be welcome; its behaviour is otherwise fine.",
)
_HINT = f"(I write `{UNNAMED}` for the call that I mean.)"


def write_prompt(
    library: str, version: str, topics: Sequence[str], symptoms: Sequence[Symptom], seed: str
) -> str:
    """Compose a report; the same arguments give the same text."""
    voice = random.Random(seed)
    opening = voice.choice(_OPENINGS).format(
        library=library, version=version, topic=", and also ".join(topics)
    )
    lines = [_line(symptom, voice) for symptom in symptoms]
    told = "For example:\n\n" + "\n".join(lines) if lines else ""
    hint = _HINT if any(UNNAMED in symptom.done for symptom in symptoms) else ""
    parts = [opening, told, hint, voice.choice(_CLOSINGS)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(symptom: Symptom, voice: random.Random) -> str:
    done, wrong, right = symptom
    if wrong == "no error at all":
        return f"- `{done}` is accepted without an error; it should be refused with `{right}`."
    if right in {"true", "false"}:
        return f"- `{done}` should be {right}, and it is not."
    if not right:
        return f"- `{done}` fails with `{wrong}`."
    forms = (
        "- `{done}` gives `{wrong}`; I expected `{right}`.",
        "- For `{done}` I get `{wrong}`, and it should be `{right}`.",
        "- `{done}`: expected `{right}`, but got `{wrong}`.",
    )
    return voice.choice(forms).format(done=done, wrong=wrong, right=right)
