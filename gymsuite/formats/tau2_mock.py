"""tau2's mock domain: a list of tasks on one side, a notification inbox on the other."""

from typing import Any, Literal

from gymsuite.formats.tau2_domain import Desk, Domain, Side
from gymsuite.tools import ToolError

Status = Literal["pending", "completed"]


def create_task(desk: Desk, user_id: str, title: str, description: str | None = None) -> object:
    """Create a task for a user."""
    if user_id not in desk.db["users"]:
        raise ToolError(f"there is no user {user_id!r}")
    key = f"task_{len(desk.db['tasks']) + 1}"
    task = {"task_id": key, "title": title, "description": description, "status": "pending"}
    desk.db["tasks"][key] = task
    desk.db["users"][user_id]["tasks"].append(key)
    return task


def get_users(desk: Desk) -> object:
    """Show all users."""
    return list(desk.db["users"].values())


def update_task_status(desk: Desk, task_id: str, status: Status) -> object:
    """Set the status of a task."""
    task = _task(desk, task_id)
    task["status"] = status
    return task


def transfer_to_human_agents(desk: Desk, summary: str) -> object:  # noqa: ARG001 - a tool takes the state
    """Hand the user to a human, with a summary of what is wanted."""
    return "transferred"


def check_notifications(desk: Desk) -> object:
    """Show the notifications in the user's inbox."""
    return list(desk.user_db.get("notifications", {}).values())


def dismiss_notification(desk: Desk, notification_id: str) -> object:
    """Mark a notification as read."""
    _notification(desk, notification_id)["status"] = "read"
    return f"dismissed {notification_id}"


def _add_notification(
    desk: Desk, notification_id: str, message: str, task_id: str | None = None
) -> object:
    row = {"notification_id": notification_id, "message": message, "status": "unread"}
    desk.user_db.setdefault("notifications", {})[notification_id] = {**row, "task_id": task_id}
    return row


def _assert_task_status(desk: Desk, task_id: str, expected_status: str) -> bool:
    return bool(_task(desk, task_id)["status"] == expected_status)


def _assert_number_of_tasks(desk: Desk, user_id: str, expected_number: int) -> bool:
    if user_id not in desk.db["users"]:
        raise ToolError(f"there is no user {user_id!r}")
    return len(desk.db["users"][user_id]["tasks"]) == expected_number


def _assert_notification_status(desk: Desk, notification_id: str, expected_status: str) -> bool:
    return bool(_notification(desk, notification_id)["status"] == expected_status)


def _task(desk: Desk, task_id: str) -> dict[str, Any]:
    task: dict[str, Any] | None = desk.db["tasks"].get(task_id)
    if task is None:
        raise ToolError(f"there is no task {task_id!r}")
    return task


def _notification(desk: Desk, notification_id: str) -> dict[str, Any]:
    found: dict[str, Any] | None = desk.user_db.get("notifications", {}).get(notification_id)
    if found is None:
        raise ToolError(f"there is no notification {notification_id!r}")
    return found


def _complete(desk: Desk) -> None:
    for task in desk.db["tasks"].values():
        task.setdefault("description", None)


MOCK = Domain(
    "mock",
    Side(
        (create_task, get_users, update_task_status, transfer_to_human_agents),
        {
            "assert_task_status": _assert_task_status,
            "assert_number_of_tasks": _assert_number_of_tasks,
        },
    ),
    Side(
        (check_notifications, dismiss_notification),
        {
            "add_notification": _add_notification,
            "assert_notification_status": _assert_notification_status,
        },
    ),
    complete=_complete,
)
