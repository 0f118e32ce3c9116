"""What is wrong with data that came from outside, in one line and without the data itself."""

from pydantic import ValidationError

_SHOWN = 3


def complaints(error: ValidationError, whole: str = "it") -> str:
    """Where each fault is, and what it is; `whole` is what the data is called as such."""
    every = [
        f"{'.'.join(map(str, e['loc'])) or whole}: {e['msg'].removeprefix('Value error, ')}"
        for e in error.errors(include_input=False, include_url=False)
    ]
    more = [f"{len(every) - _SHOWN} more"] if len(every) > _SHOWN else []
    return "; ".join([*every[:_SHOWN], *more])
