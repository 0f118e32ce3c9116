"""Wishes that no rule has anything to say about: one write each, known from the words alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from gymsuite.types import ToolCall
from gymsuite.worlds.gold import Entity
from gymsuite.worlds.plans import call
from gymsuite.worlds.rows import need

from .base import LABELS, phone, put_mail, put_task
from .scene import Scene


@dataclass(frozen=True)
class Simple:
    """A wish: its row by number and in words, what should become of it, and how one sees that."""

    by_id: str
    by_name: str
    target: str
    look: ToolCall
    write: ToolCall
    done: Entity
    described: Entity


def draw_simple(scene: Scene, kind: str) -> Simple:
    """A wish of this kind about new rows, or rows that nothing else is about."""
    return _SIMPLE[kind](scene)


def _task(scene: Scene) -> tuple[str, str]:
    title = scene.titles.pop()
    who = scene.draws.choice(scene.colleagues())
    return put_task(scene.state, scene.draws, title, scene.today, who), title


def _complete(scene: Scene) -> Simple:
    task, title = _task(scene)
    return Simple(
        f"task {task}",
        f'the task "{title}"',
        "",
        call("search_tasks", words=title),
        call("complete_task", task_id=task),
        Entity(table="tasks", where={"id": task, "status": "done"}),
        Entity(table="tasks", where={"title": title}),
    )


def _postpone(scene: Scene) -> Simple:
    task, title = _task(scene)
    day = (scene.today + timedelta(scene.draws.between(61, 200))).isoformat()
    return Simple(
        f"task {task}",
        f'the task "{title}"',
        day,
        call("search_tasks", words=title),
        call("postpone_task", task_id=task, due_on=day),
        Entity(table="tasks", where={"id": task, "due_on": day}),
        Entity(table="tasks", where={"title": title}),
    )


def _mail(scene: Scene) -> tuple[str, str]:
    title = scene.titles.pop()
    sender = scene.draws.choice([*scene.colleagues(), *scene.outsiders()])
    return put_mail(scene.state, scene.draws, sender, title, "As promised."), title


def _file(scene: Scene) -> Simple:
    mail, title = _mail(scene)
    return Simple(
        f"mail {mail}",
        f'the mail "{title}"',
        "",
        call("search_mails", words=title),
        call("move_mail", mail_id=mail, folder="archive"),
        Entity(table="mails", where={"id": mail, "folder": "archive"}),
        Entity(table="mails", where={"subject": title}),
    )


def _label(scene: Scene) -> Simple:
    mail, title = _mail(scene)
    has = need(scene.state, "mails", mail)["label"]
    label = scene.draws.choice([label for label in LABELS if label not in ("", has)])
    return Simple(
        f"mail {mail}",
        f'the mail "{title}"',
        label,
        call("search_mails", words=title),
        call("label_mail", mail_id=mail, label=label),
        Entity(table="mails", where={"id": mail, "label": label}),
        Entity(table="mails", where={"subject": title}),
    )


def _phone(scene: Scene) -> Simple:
    row = need(scene.state, "contacts", scene.draws.choice(scene.outsiders()))
    number = phone(scene.draws)
    return Simple(
        f"contact {row['id']}",
        row["name"],
        number,
        call("search_contacts", words=row["name"]),
        call("change_phone", contact_id=row["id"], phone=number),
        Entity(table="contacts", where={"id": row["id"], "phone": number}),
        Entity(table="contacts", where={"name": row["name"]}),
    )


def _visit(scene: Scene) -> Simple:
    row = scene.draws.choice(scene.state.find("accounts", {}))
    return Simple(
        f"account {row['id']}",
        f"the account {row['name']}",
        "",
        call("search_accounts", words=row["name"]),
        call("log_activity", account_id=row["id"], kind="visit", note="A visit."),
        Entity(table="activities", where={"account_id": row["id"], "kind": "visit"}),
        Entity(table="accounts", where={"name": row["name"]}),
    )


_SIMPLE: Mapping[str, Callable[[Scene], Simple]] = {
    "complete_task": _complete,
    "postpone_task": _postpone,
    "file_mail": _file,
    "label_mail": _label,
    "change_phone": _phone,
    "log_visit": _visit,
}
KINDS = tuple(_SIMPLE)
