"""The world of the desk: its tools, how a task's state begins, and the customer on the line."""

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

LEAD = "The customer says: "


def begin(hidden: Row) -> State:
    """A task's state at the start of an episode."""
    universe = base(hidden["split"], hidden["start"]["universe"])
    return begin_with_user(SCHEMA, universe, hidden)


def tell_customer(state: State, text: str) -> object:
    """Say something to the customer and read the answer; it ends when the customer leaves."""
    return talk(state, "the customer", VOICES, text)


def _start(task: Task) -> State:
    return begin(task.hidden)


WORLD = World(SCHEMA, (tell_customer, *LOOKUPS), WRITES, _start)
