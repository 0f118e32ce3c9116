"""The world of the office: its tools, how a task's state begins, and who can be asked."""

from gymsuite.types import Task
from gymsuite.worlds.beginning import begin_with_user
from gymsuite.worlds.server import World
from gymsuite.worlds.state import Row, State
from gymsuite.worlds.user import talk

from .base import base
from .lookups import LOOKUPS
from .phrases import VOICES
from .schema import SCHEMA
from .writes import WRITES


def begin(hidden: Row) -> State:
    """A task's state at the start of an episode."""
    universe = base(hidden["split"], hidden["start"]["universe"])
    return begin_with_user(SCHEMA, universe, hidden)


def tell_employer(state: State, text: str) -> object:
    """Say something to your employer and read the answer; it ends when your employer leaves."""
    return talk(state, "your employer", VOICES, text)


def _start(task: Task) -> State:
    return begin(task.hidden)


WORLD = World(SCHEMA, (tell_employer, *LOOKUPS), WRITES, _start)
