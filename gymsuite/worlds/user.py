"""A scripted user: a goal automaton that hears the agent and sees what happened in the world."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from gymsuite.types import Model
from gymsuite.worlds.draws import Draws
from gymsuite.worlds.gold import Entity
from gymsuite.worlds.server import Ended
from gymsuite.worlds.state import State

Voice = Mapping[str, Sequence[str]]
"""For each act several ways to say it. Acts: give, unknown, confirm, still_waiting, push_back,
accept, thanks, next, repeat, as_written, leave; `{}` is where the value or the request goes."""


class Request(Model):
    """One thing that the user wants.

    `say` is empty for what the first message said already. It is over when a row of the world
    answers to one of `done`. `correction` is a change of mind:
    said at the first contact, whatever the agent says. `instead` is what the user asks for when
    told that it cannot be; without it the user objects `push_backs` times.
    """

    say: str = ""
    correction: str = ""
    done: tuple[Entity, ...]
    instead: str = ""
    push_backs: int = 0


class Script(Model):
    """A user. `known` are the slots it can give when asked, by the name of the slot."""

    requests: tuple[Request, ...]
    known: Mapping[str, str] = {}
    voice: str = "train"
    seed: str = ""
    patience: int = 14


class Utterance(NamedTuple):
    """What the user says, and whether it leaves with that."""

    text: str
    leaves: bool = False


@dataclass
class _Mind:
    at: int = 0
    turns: int = 0
    pushes: int = 0
    told_instead: bool = False
    corrected: bool = False


_SLOTS: Mapping[str, str] = {
    "email": r"e-?mail",
    "name": r"\b(full|your|last|first)\s+name\b|\bname and\b|\bwho am i\b",
    "zip": r"\bzip\b|post(al)?\s?code",
    "order": r"order (number|id)|which order",
    "booking": r"booking (number|id|reference)|which (booking|flight)|confirmation (number|code)",
    "payment": r"payment method|which (card|payment)|refund(ed)? to|like to pay|charge",
    "address": r"which address|what address|new address|deliver(ed)? to|ship(ped)? to",
    "option": r"which (one|variant|option|colou?r|size|flight)|what (colou?r|size)|prefer|choose",
    "reason": r"\breason\b|\bwhy\b",
}
_ASKS = re.compile(
    r"\?|\b(please|could you|can you|may i|need|provide|tell me|confirm)\b", re.IGNORECASE
)
_CONFIRMS = re.compile(
    r"\b(shall i|should i|may i|do you (agree|confirm|want)|would you like|proceed|confirm|"
    r"go ahead|is (that|this) (ok|okay|right|correct|fine)|yes\b.*\bno)\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(cannot|can ?not|can't|unable|not (possible|allowed|eligible|able)|unfortunately|declin|"
    r"against (our|the) policy|(is|are) not|isn't|won't|sold out|out of stock|no longer|sorry)",
    re.IGNORECASE,
)


def hear(state: State, script: Script, voice: Voice, text: str) -> Utterance:
    """What the user answers to `text`; its mind is kept with the state, so that forks have it."""
    state.hear(text)
    mind = _Mind(**json.loads(state.get("user", "{}")))
    mind.turns += 1
    utterance = _answer(state, script, _Tongue(script, voice, mind), text)
    state.set("user", json.dumps(asdict(mind)))
    return utterance


def talk(state: State, who: str, voices: Mapping[str, Voice], text: str) -> str | Ended:
    """What a tool replies that tells a user something; it ends the episode when the user leaves."""
    script = Script.model_validate_json(state.get("script"))
    said = hear(state, script, voices[script.voice], text)
    reply = f"{who[:1].upper()}{who[1:]} says: {said.text}"
    return Ended(f"{reply}\n[{who} has left]") if said.leaves else reply


def unsaid(requests: Sequence[Request], opening: Sequence[str]) -> tuple[Request, ...]:
    """The requests without the words of those that the first message says already."""
    return tuple(
        request.model_copy(update={"say": ""}) if request.say in opening else request
        for request in requests
    )


class _Tongue:
    """Picks a way to say each act: the same for the same script and turn."""

    def __init__(self, script: Script, voice: Voice, mind: _Mind) -> None:
        self.mind = mind
        self._voice = voice
        self._draws = Draws("voice", script.seed, mind.turns)

    def say(self, act: str, *values: str) -> str:
        return self._draws.choice(self._voice[act]).format(*values)

    def ask(self, act: str, request: Request) -> str:
        return self.say(act, request.say) if request.say else self.say("as_written")


def _answer(state: State, script: Script, tongue: _Tongue, text: str) -> Utterance:
    mind = tongue.mind
    before = mind.at
    while mind.at < len(script.requests) and _is_over(state, script.requests[mind.at]):
        mind.at, mind.pushes = mind.at + 1, 0
        mind.told_instead = mind.corrected = False
    if mind.at == len(script.requests):
        return Utterance(tongue.say("thanks"), leaves=True)
    request = script.requests[mind.at]
    if mind.at > before:
        return Utterance(tongue.ask("next", request))
    if request.correction and not mind.corrected:
        mind.corrected = True
        return Utterance(" ".join((*_given(script, tongue, text), request.correction)))
    if mind.turns >= script.patience:
        return Utterance(tongue.say("leave"), leaves=True)
    if _REFUSES.search(text):
        return Utterance(_object(request, tongue))
    return Utterance(_help(script, request, tongue, text))


def _object(request: Request, tongue: _Tongue) -> str:
    mind = tongue.mind
    if request.instead and not mind.told_instead:
        mind.told_instead = True
        return request.instead
    if mind.pushes < request.push_backs:
        mind.pushes += 1
        return tongue.say("push_back")
    return tongue.say("accept")


def _help(script: Script, request: Request, tongue: _Tongue, text: str) -> str:
    if given := _given(script, tongue, text):
        return " ".join(given)
    if _asked(text) and not _CONFIRMS.search(text):
        return tongue.say("unknown")
    if _CONFIRMS.search(text):
        return tongue.say("confirm")
    if "?" in text:
        return tongue.ask("repeat", request)
    return tongue.say("still_waiting")


def _asked(text: str) -> list[str]:
    """The slots that the agent asks for."""
    if not _ASKS.search(text):
        return []
    return [slot for slot, pattern in _SLOTS.items() if re.search(pattern, text, re.IGNORECASE)]


def _given(script: Script, tongue: _Tongue, text: str) -> list[str]:
    """Answers to what is asked for, as far as the user knows it."""
    return [tongue.say("give", script.known[s]) for s in _asked(text) if s in script.known]


def _is_over(state: State, request: Request) -> bool:
    return any(_answers(state, sign) for sign in request.done)


def _answers(state: State, sign: Entity) -> bool:
    return bool(state.find(sign.table, sign.where))
