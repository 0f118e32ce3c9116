"""One request within a task: what the customer says, what is right, and how the oracle does it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gymsuite.errors import DefinitionError
from gymsuite.types import ToolCall
from gymsuite.worlds.gold import Entity, Fact, Mine
from gymsuite.worlds.plans import call
from gymsuite.worlds.rules import weighed
from gymsuite.worlds.splits import pick
from gymsuite.worlds.text import sentence
from gymsuite.worlds.user import Request

from . import phrases, requests
from .facts import Ask, decision_on, facts_of
from .policy import Decision
from .requests import Named
from .rules import RULES
from .scene import Scene


@dataclass
class Part:
    """A request with everything that follows from it. `others` are equally right ways to end it."""

    request: Request
    calls: list[ToolCall]
    tell: tuple[Fact, ...]
    described: tuple[Entity, ...]
    reads: tuple[str, ...]
    mines: tuple[Mine, ...] = ()
    others: list["Part"] = field(default_factory=list)


def say(scene: Scene, ask: Ask, named: Named) -> str:
    """The request in words, without a lead."""
    verb = pick(scene.draws, scene.split, phrases.VERBS[ask.request])
    return verb.format(what=named.what, target=named.target)


def lead(scene: Scene, words: str) -> str:
    """A request as a sentence of its own."""
    return pick(scene.draws, scene.split, phrases.LEADS).format(words)


def plain(scene: Scene, ask: Ask, named: Named, *, push_backs: int = 0) -> Part:
    """A request that is granted, declined or handed off as the policy says."""
    decision = decision_on(scene.state, scene.policy, ask)
    calls = requests.reading(scene.state, ask)
    if decision.verdict == "decline":
        calls.append(call("tell_customer", text=requests.refusing(decision)))
    return Part(
        request=Request(
            say=lead(scene, say(scene, ask, named)),
            done=requests.signs(scene.state, ask),
            push_backs=push_backs,
        ),
        calls=[*calls, *_ending(scene, ask, decision)],
        tell=_facts(decision),
        described=named.entities,
        reads=_reads(scene, ask),
        mines=_mines(scene, ask, decision),
    )


def with_fallback(scene: Scene, ask: Ask, named: Named, instead: Ask, words: str) -> Part:
    """A request that cannot be, and what the customer settles for: only that is carried out."""
    refusal = decision_on(scene.state, scene.policy, ask)
    decision = decision_on(scene.state, scene.policy, instead)
    if decision.verdict != "grant":
        raise DefinitionError(f"the fallback of {ask} comes out as {decision}")
    looks = requests.reading(scene.state, ask)
    calls = [
        *looks,
        call("tell_customer", text=requests.refusing(refusal)),
        *(look for look in requests.reading(scene.state, instead) if look not in looks),
        *_ending(scene, instead, decision),
    ]
    way = pick(scene.draws, scene.split, phrases.INSTEAD)
    return Part(
        request=Request(
            say=lead(scene, say(scene, ask, named)),
            instead=sentence(way.format(words)),
            done=requests.signs(scene.state, instead),
        ),
        calls=calls,
        tell=_facts(decision),
        described=named.entities,
        reads=(*_reads(scene, ask), *_reads(scene, instead)),
    )


def with_sell_out(scene: Scene, ask: Ask, named: Named, instead: Ask, words: str) -> Part:
    """As `with_fallback`, but that it cannot be only shows when it is tried."""
    part = with_fallback(scene, ask, named, instead, words)
    attempt = requests.writing(scene.state, ask, decision_on(scene.state, scene.policy, ask))
    scene.state.put("sell_outs", {"id": f"SEL-{ask.target[4:]}", "variant_id": ask.target})
    refusal = Decision("decline", "out_of_stock")
    at = next(i for i, c in enumerate(part.calls) if c.name == "tell_customer")
    told = call("tell_customer", text=requests.refusing(refusal))
    part.calls[at : at + 1] = [attempt, told]
    return part


def with_correction(scene: Scene, first: Ask, named: Named, ask: Ask, target: str) -> Part:
    """A customer who changes the target at the first contact: the second one counts."""
    decision = decision_on(scene.state, scene.policy, ask)
    words = say(scene, ask, Named(named.what, target, ()))
    way = pick(scene.draws, scene.split, phrases.CORRECTION)
    question = call("tell_customer", text="I can do that. Shall I go ahead?")
    return Part(
        request=Request(
            say=lead(scene, say(scene, first, named)),
            correction=sentence(way.format(words)),
            done=requests.signs(scene.state, ask),
        ),
        calls=[*requests.reading(scene.state, ask), question, *_ending(scene, ask, decision)],
        tell=_facts(decision),
        described=named.entities,
        reads=_reads(scene, ask),
    )


def _ending(scene: Scene, ask: Ask, decision: Decision) -> list[ToolCall]:
    told = call("tell_customer", text=requests.telling(ask, decision))
    return [requests.writing(scene.state, ask, decision), told]


def _facts(decision: Decision) -> tuple[Fact, ...]:
    cents = abs(decision.amount_cents)
    return (Fact(kind="cents", value=cents),) if cents else ()


_LOOKED_AT: Mapping[str, str] = {
    "other_country": "addresses",
    "insufficient_balance": "payment_methods",
    "out_of_stock": "variants",
    "coupon_expired": "coupons",
    "no_seats": "flights",
}
"""Where the wanted row lies that the rule of this reason is about."""


def _reads(scene: Scene, ask: Ask) -> tuple[str, ...]:
    """The order or booking, and the wanted row where a rule that counts is about it."""
    state = scene.state
    table, row = requests.owner_row(state, ask)
    found = [f"{table}:{row['id']}"]
    for rule, _ in weighed(RULES, ask.request, scene.policy, facts_of(state, ask)):
        if wanted := _LOOKED_AT.get(rule.reason):
            coupons = state.find_folded("coupons", "code", ask.target)
            found.append(f"{wanted}:{coupons[0]['id'] if coupons else ask.target}")
    return tuple(found)


def _mines(scene: Scene, ask: Ask, decision: Decision) -> tuple[Mine, ...]:
    """Money that moves for a request that is forbidden, and anything done to a stranger's rows."""
    if decision.verdict == "grant":
        return ()
    where = {"subject_id": ask.subject}
    mines = [Mine(table=table, op="insert", where=where) for table in ("refunds", "charges")]
    if decision.reason == "not_your_order":
        table, row = requests.owner_row(scene.state, ask)
        mines.append(Mine(table=table, op="update", id=row["id"]))
    return tuple(mines)
