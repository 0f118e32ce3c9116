"""Draws the rows of requests about deals, mails and tasks."""

from datetime import date, timedelta

from gymsuite.worlds.rows import need

from .asks import Ask
from .base import put_activity, put_deal, put_mail
from .rules import due
from .scene import Scene


def _deal(scene: Scene, title: str, *, contract: bool = True) -> str:
    state, draws = scene.state, scene.draws
    account = draws.choice(state.find("accounts", {}))["id"]
    row = {"account_id": account, "kind": "contract"}
    if contract and not state.find("activities", row):
        put_activity(state, account, "contract")
    return put_deal(state, draws, account, title, draws.choice(scene.colleagues()))


def discount(scene: Scene, title: str, wanted: str) -> Ask:
    """A discount on a new deal, often at the limit."""
    deal = _deal(scene, title)
    row = need(scene.state, "deals", deal)
    tier = need(scene.state, "accounts", row["account_id"])["tier"]
    most = scene.policy.most_percent(tier)
    number = scene.draws.choice((most, most - 1, scene.draws.between(2, most)))
    if wanted == "above_limit":
        number = most + scene.draws.between(1, 6)
    return Ask("discount", deal, title, number=number)


def win(scene: Scene, title: str, wanted: str) -> Ask:
    """A new deal that is to be marked as won."""
    return Ask("win", _deal(scene, title, contract=wanted != "no_contract"), title)


def forward(scene: Scene, title: str, wanted: str) -> Ask:
    """A new mail that is to be sent on."""
    sender = scene.draws.choice(scene.colleagues())
    mail = put_mail(scene.state, scene.draws, sender, title, "Here is what we spoke about.")
    people = scene.outsiders() if scene.draws.chance(50) else scene.colleagues()
    if wanted == "confidential":
        scene.state.update("mails", mail, {"label": "confidential"})
        people = scene.outsiders()
    return Ask("forward", mail, title, target=scene.draws.choice(people))


def new_task(scene: Scene, title: str, wanted: str) -> Ask:
    """A task that is to be created, often for a day on which nothing may be due."""
    horizon = scene.policy.horizon_days
    ahead = scene.draws.between(3, horizon)
    if wanted == "too_far":
        ahead = horizon + scene.draws.between(1, 20)
    day = scene.today + timedelta(ahead)
    if wanted == "grant" and scene.draws.chance(60):
        day = _unfit(scene, day)
    who = scene.draws.choice(scene.colleagues())
    return Ask("new_task", title=title, day=day.isoformat(), target=who)


def _unfit(scene: Scene, day: date) -> date:
    """The last day up to this one on which nothing may be due."""
    while due(scene.policy, day.toordinal()) == day.toordinal():
        day -= timedelta(1)
    return day
