"""Signs in a log that the world broke, named as in SWE-bench's reports: advice, no verdict."""

from collections.abc import Mapping
from typing import NamedTuple

from gymsuite.swe.parsers.shapes import shape

_ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "browser_launch_failed": ("Failed to launch", "Failed to connect to the bus"),
    "display_unavailable": ("cannot open display", "Missing X server", "unable to open X display"),
    "out_of_memory": ("Cannot allocate memory", "OutOfMemoryError"),
    "container_unavailable": (
        "Error response from daemon",
        "Cannot connect to the Docker daemon",
    ),
    "network_unreachable": ("Could not resolve host", "Temporary failure in name resolution"),
}
_AMBIGUOUS: Mapping[str, tuple[str, ...]] = {
    "missing_module": ("Cannot find module", "MODULE_NOT_FOUND", "ModuleNotFoundError"),
    "no_tests_collected": ("no tests ran", "collected 0 items"),
}
_TIMED_OUT = shape("Timeout error: {number} seconds exceeded")


class Symptom(NamedTuple):
    """What a log looks like; one that `is_environment` cannot be a patch's fault."""

    reason: str
    is_environment: bool


def symptom(log: str) -> Symptom | None:
    """The first sign in a log, in the order in which SWE-bench looks for them."""
    for reason, phrases in _ENVIRONMENT.items():
        killed = reason == "out_of_memory" and "Killed" in log.split("\n")
        if killed or any(phrase in log for phrase in phrases):
            return Symptom(reason, is_environment=True)
    for reason, phrases in _AMBIGUOUS.items():
        if any(phrase in log for phrase in phrases):
            return Symptom(reason, is_environment=False)
    if _TIMED_OUT.search(log):
        return Symptom("tests_timed_out", is_environment=False)
    return None
