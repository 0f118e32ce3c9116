"""What the oracle tells its employer, and what of it has to be told."""

from gymsuite.worlds.gold import Fact
from gymsuite.worlds.state import State
from gymsuite.worlds.text import dollars

from .asks import Ask
from .lookups import owner_zone, when
from .policy import Decision


def telling(state: State, ask: Ask, decision: Decision) -> str:
    """What the owner is told after the write."""
    what = ask.request.replace("_", " ")
    match decision.verdict:
        case "report":
            return "I have reported that mail: it does not come from the address of its writer."
        case "handover":
            return f"I have handed over the {what} request: {_words(decision)}."
        case "decline":
            return f"I have recorded that the {what} request is declined: {_words(decision)}."
    return f"The {what} request is carried out{_outcome(state, ask, decision.value)}."


def _outcome(state: State, ask: Ask, value: str | int) -> str:
    if ask.request == "discount":
        return f"; the new amount is {dollars(int(value))}"
    if isinstance(value, str):
        return f", due on {value}" if value else ""
    return f"; it starts at {when(owner_zone(state), value)}"


def refusing(decision: Decision) -> str:
    """What the owner is told before a request is declined."""
    return f"I am sorry, that is not possible: {_words(decision)}."


def _words(decision: Decision) -> str:
    return decision.reason.replace("_", " ")


def facts(state: State, ask: Ask, decision: Decision) -> tuple[Fact, ...]:
    """What the owner has to be told."""
    value = decision.value
    if decision.verdict != "grant" or value == "":
        return ()
    if ask.request == "discount":
        return (Fact(kind="cents", value=value),)
    if isinstance(value, int):
        value = when(owner_zone(state), value)[-5:]
    return (Fact(kind="word", value=value),)
