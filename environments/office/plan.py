"""One wish within a task: what is said, what is right, how the oracle and the greedy do it."""

from dataclasses import dataclass, field

from gymsuite.errors import DefinitionError
from gymsuite.types import ToolCall
from gymsuite.worlds.gold import Entity, Fact, Mine
from gymsuite.worlds.plans import call
from gymsuite.worlds.rows import need
from gymsuite.worlds.splits import pick
from gymsuite.worlds.text import sentence
from gymsuite.worlds.user import Request

from . import phrases, requests, words
from .asks import Ask
from .facts import decision_on
from .grounds import Group, grounds
from .naive import naive_decision
from .policy import Decision
from .scene import Scene
from .simple import Simple


@dataclass
class Part:
    """A wish with all that follows.

    `naive` is what one does who heeds no rule; `decided` are the decisions on which it rests.
    """

    request: Request
    calls: list[ToolCall]
    naive: list[ToolCall]
    tell: tuple[Fact, ...] = ()
    described: tuple[Entity, ...] = ()
    reads: tuple[Group, ...] = ()
    mines: tuple[Mine, ...] = ()
    decided: list[tuple[Ask, Decision]] = field(default_factory=list)


def say(scene: Scene, ask: Ask) -> str:
    """The request in words, without a lead."""
    verb = pick(scene.draws, scene.split, phrases.VERBS[ask.request])
    return verb.format(**requests.fields(scene.state, ask))


def lead(scene: Scene, text: str) -> str:
    """A request as a sentence of its own."""
    return sentence(pick(scene.draws, scene.split, phrases.LEADS).format(text))


def unruled(scene: Scene, kind: str, wish: Simple, *, by_id: bool) -> Part:
    """A wish that no rule has anything to say about."""
    verb = pick(scene.draws, scene.split, phrases.VERBS[kind])
    text = verb.format(what=wish.by_id if by_id else wish.by_name, target=wish.target)
    told = call("tell_employer", text=f"The {kind.replace('_', ' ')} request is carried out.")
    calls = [wish.write, told] if by_id else [wish.look, wish.write, told]
    return Part(
        Request(say=lead(scene, text), done=(wish.done,)),
        calls,
        calls,
        described=(wish.described,),
    )


def plain(scene: Scene, ask: Ask, *, push_backs: int = 0) -> Part:
    """A wish that is carried out, declined, handed over or reported, as the rules say."""
    state = scene.state
    decision = decision_on(state, scene.policy, ask)
    looks = _looks(scene, ask, decision)
    calls = [*looks]
    if decision.verdict == "decline":
        calls.append(call("tell_employer", text=words.refusing(decision)))
    return Part(
        Request(
            say=lead(scene, say(scene, ask)),
            done=requests.signs(state, ask, decision),
            push_backs=push_backs,
        ),
        [*calls, *_ending(scene, ask, decision)],
        _naive(scene, ask),
        words.facts(state, ask, decision),
        requests.described(state, ask),
        grounds(state, scene.policy, ask),
        _mines(scene, ask, decision),
        [(ask, decision)],
    )


def with_fallback(scene: Scene, ask: Ask, instead: Ask) -> Part:
    """A wish that cannot be, and what is settled for: only that is carried out."""
    state = scene.state
    refusal = decision_on(state, scene.policy, ask)
    decision = decision_on(state, scene.policy, instead)
    if decision.verdict != "grant":
        raise DefinitionError(f"the fallback of {ask} comes out as {decision}")
    way = pick(scene.draws, scene.split, phrases.INSTEAD)
    looks = requests.reading(state, scene.policy, ask)
    return Part(
        Request(
            say=lead(scene, say(scene, ask)),
            instead=sentence(way.format(say(scene, instead))),
            done=requests.signs(state, instead, decision),
        ),
        [
            *looks,
            call("tell_employer", text=words.refusing(refusal)),
            *(look for look in requests.reading(state, scene.policy, instead) if look not in looks),
            *_ending(scene, instead, decision),
        ],
        _naive(scene, ask),
        words.facts(state, instead, decision),
        requests.described(state, ask),
        (*grounds(state, scene.policy, ask), *grounds(state, scene.policy, instead)),
        decided=[(ask, refusal), (instead, decision)],
    )


def with_correction(scene: Scene, first: Ask, ask: Ask) -> Part:
    """A wish that is changed at the first contact: the second one counts."""
    state = scene.state
    decision = decision_on(state, scene.policy, ask)
    way = pick(scene.draws, scene.split, phrases.CORRECTION)
    question = call("tell_employer", text="I can do that. Shall I go ahead?")
    return Part(
        Request(
            say=lead(scene, say(scene, first)),
            correction=sentence(way.format(say(scene, ask))),
            done=requests.signs(state, ask, decision),
        ),
        [*requests.reading(state, scene.policy, ask), question, *_ending(scene, ask, decision)],
        [question, *_naive(scene, ask)],
        words.facts(state, ask, decision),
        requests.described(state, ask),
        grounds(state, scene.policy, ask),
        decided=[(ask, decision)],
    )


def _looks(scene: Scene, ask: Ask, decision: Decision) -> list[ToolCall]:
    """The mail that asks comes first; of one that is not genuine nothing else is looked at."""
    mail = _mail(scene, ask)
    if decision.verdict == "report" or decision.reason == "not_authorised":
        return mail
    return [*mail, *(c for c in requests.reading(scene.state, scene.policy, ask) if c not in mail)]


def _mail(scene: Scene, ask: Ask) -> list[ToolCall]:
    if not ask.mail:
        return []
    writer = scene.state.get("writer")
    return [call("read_mail", mail_id=ask.mail), call("get_contact", contact_id=writer)]


def _ending(scene: Scene, ask: Ask, decision: Decision) -> list[ToolCall]:
    told = call("tell_employer", text=words.telling(scene.state, ask, decision))
    return [*requests.writing(scene.state, ask, decision), told]


def _naive(scene: Scene, ask: Ask) -> list[ToolCall]:
    return [
        *_mail(scene, ask),
        *requests.reading(scene.state, scene.policy, ask),
        *_ending(scene, ask, naive_decision(scene.state, ask)),
    ]


def _mines(scene: Scene, ask: Ask, decision: Decision) -> tuple[Mine, ...]:
    """Deals that are changed and mails that go out although that is forbidden."""
    if decision.verdict == "grant":
        return ()
    if ask.request in ("discount", "win"):
        return (Mine(table="deals", op="update", id=ask.subject),)
    if ask.request == "forward":
        to = need(scene.state, "contacts", ask.target)["email"]
        return (Mine(table="mails", op="insert", where={"recipient": to}),)
    return ()
