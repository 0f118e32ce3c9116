import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Environment, Message, Score, Task, ToolCall
from gymsuite.episode import Episode
from gymsuite.errors import DefinitionError
from gymsuite.formats.tau2 import read_tau2, tau2_environment
from gymsuite.formats.tau2_domain import Desk, Domain
from gymsuite.formats.tau2_mock import MOCK
from gymsuite.formats.tau2_rule import merged
from gymsuite.formats.tau2_telecom import TELECOM
from gymsuite.worlds.gate import play
from gymsuite.worlds.replay import no_sandbox

MOCK_DB = {
    "tasks": {"task_1": {"task_id": "task_1", "title": "Paint", "status": "pending"}},
    "users": {"user_1": {"user_id": "user_1", "name": "Ada", "tasks": ["task_1"]}},
}
INBOX = {
    "notifications": {
        "n_1": {"notification_id": "n_1", "message": "Hi", "status": "unread", "task_id": "task_1"}
    }
}
CREATE = {"name": "create_task", "arguments": {"user_id": "user_1", "title": "Meet"}}
FINISH = {"name": "update_task_status", "arguments": {"task_id": "task_1", "status": "completed"}}


def task(**criteria: Any) -> dict[str, Any]:
    initial_state = criteria.pop("initial_state", None)
    return {
        "id": "one",
        "ticket": "Do it.",
        "user_scenario": {"instructions": "Do it."},
        "initial_state": initial_state,
        "evaluation_criteria": criteria,
    }


def read(folder: Path, row: dict[str, Any], rule: str = "tau2") -> tuple[Task, Environment]:
    (folder / "db.json").write_text(json.dumps(MOCK_DB))
    (folder / "user_db.json").write_text(json.dumps(INBOX))
    (folder / "policy.md").write_text("Be kind.")
    (folder / "tasks.json").write_text(json.dumps([row]))
    tasks = read_tau2(folder, MOCK, rule=rule)
    return tasks[0], tau2_environment("tools/tau2-v1", tasks, MOCK)


def score(environment: Environment, one: Task, *calls: dict[str, Any], answer: str = "") -> Score:
    plan = [ToolCall.model_validate(call) for call in calls]
    submit = ToolCall(name="submit", arguments={"answer": answer})
    return asyncio.run(play(environment, one, [*plan, submit], no_sandbox))


def test_gold_passes_and_doing_nothing_does_not(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(actions=[CREATE]))
    assert "Be kind." in one.prompt
    assert "Do it." in one.prompt
    assert asyncio.run(play(environment, one, one.solution, no_sandbox)).passed
    assert not score(environment, one).passed


def test_an_extra_write_spoils_the_database(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(actions=[CREATE]))
    assert score(environment, one, CREATE, FINISH).metrics["DB"] == 0


def test_a_refused_call_changes_nothing(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(actions=[CREATE]))
    stranger = {"name": "create_task", "arguments": {"user_id": "user_9", "title": "x"}}
    assert score(environment, one, stranger, CREATE).passed


def test_an_episode_that_is_cut_short_earns_nothing(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(actions=[CREATE]))
    call = ToolCall.model_validate(CREATE)
    found = asyncio.run(play(environment, one, [call], no_sandbox))
    assert found.metrics["DB"] == 1
    assert not found.passed


def test_what_asks_for_nothing_is_passed_by_nobody_strictly(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(nl_assertions=["The user is happy"]))
    assert score(environment, one).passed
    assert score(environment, one).metrics["strict"] == 0
    (tmp_path / "tasks.json").write_text(json.dumps([task()]))
    assert read_tau2(tmp_path, MOCK, rule="strict") == ()


def test_a_call_with_fewer_arguments_passes_for_the_action(tmp_path: Path) -> None:
    gold = {**CREATE, "arguments": {**CREATE["arguments"], "description": "d"}}  # type: ignore[dict-item]
    row = task(actions=[gold], reward_basis=["ACTION"])
    one, environment = read(tmp_path, row)
    assert score(environment, one, CREATE).metrics["ACTION"] == 1
    other = {"name": "create_task", "arguments": {"user_id": "user_1", "title": "Else"}}
    assert score(environment, one, other).metrics["ACTION"] == 0


def test_an_action_may_be_compared_by_name_alone(tmp_path: Path) -> None:
    gold = {"name": "transfer_to_human_agents", "arguments": {"summary": "s"}, "compare_args": []}
    one, environment = read(tmp_path, task(actions=[gold], reward_basis=["DB", "ACTION"]))
    said = {"name": "transfer_to_human_agents", "arguments": {"summary": "other words"}}
    assert score(environment, one, said).passed
    assert not score(environment, one).passed


def test_a_number_inside_a_number_is_said_only_by_tau2s_rule(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(actions=[CREATE], communicate_info=["10"]))
    hidden_in = score(environment, one, CREATE, answer="order W6210578")
    assert (hidden_in.metrics["tau2"], hidden_in.metrics["strict"]) == (1, 0)
    said = score(environment, one, CREATE, answer="It is 10 dollars.")
    assert (said.metrics["tau2"], said.metrics["strict"]) == (1, 1)
    assert not score(environment, one, CREATE, answer="ten").passed


def test_a_user_who_does_what_gold_leaves_out_passes_only_strictly(tmp_path: Path) -> None:
    read_it = {"notification_id": "n_1", "expected_status": "read"}
    assertion = {
        "env_type": "user",
        "func_name": "assert_notification_status",
        "arguments": read_it,
    }
    row = task(actions=[FINISH], env_assertions=[assertion], reward_basis=["DB", "ENV_ASSERTION"])
    one, environment = read(tmp_path, row)
    dismiss = {"name": "dismiss_notification", "arguments": {"notification_id": "n_1"}}
    found = score(environment, one, FINISH, dismiss)
    assert (found.metrics["tau2"], found.metrics["strict"]) == (0, 1)
    assert score(environment, one, FINISH).metrics["strict"] == 0


def test_data_setup_and_history_come_before_the_task(tmp_path: Path) -> None:
    state = {
        "initialization_data": {"agent_data": {"users": {"user_1": {"name": "Eve"}}}},
        "initialization_actions": [
            {"env_type": "assistant", "func_name": "create_task", "arguments": CREATE["arguments"]}
        ],
        "message_history": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "tool_calls": [{"id": "1", **CREATE}]},
        ],
    }
    status = {"task_id": "task_3", "expected_status": "completed"}
    assertion = {"env_type": "assistant", "func_name": "assert_task_status", "arguments": status}
    row = task(env_assertions=[assertion], reward_basis=["ENV_ASSERTION"], initial_state=state)
    one, environment = read(tmp_path, row)
    assert "Hello." in one.prompt
    assert one.solution == ()
    done = {"name": "update_task_status", "arguments": {"task_id": "task_3", "status": "completed"}}
    assert score(environment, one, done).passed
    assert not score(environment, one).passed


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (task(actions=[{"name": "fly"}]), "the assistant has no function 'fly'"),
        (task(actions=[{**CREATE, "requestor": "dog"}]), "the dog has no function 'create_task'"),
        (
            task(env_assertions=[{"env_type": "user", "func_name": "x"}]),
            "the user has no function 'x'",
        ),
        (task(reward_basis=["LUCK"]), "tasks.json:1: evaluation_criteria.reward_basis"),
    ],
)
def test_a_task_that_cannot_be_judged_is_named_when_it_is_read(
    tmp_path: Path, row: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DefinitionError, match=problem):
        read(tmp_path, row)


@pytest.mark.parametrize(("text", "problem"), [("{", "not readable"), ("[]", "object of tables")])
def test_a_broken_database_is_named(tmp_path: Path, text: str, problem: str) -> None:
    read(tmp_path, task(actions=[CREATE]))
    (tmp_path / "user_db.json").write_text(text)
    with pytest.raises(DefinitionError, match=rf"user_db\.json: .*{problem}"):
        read_tau2(tmp_path, MOCK)


def test_what_only_a_model_can_judge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"tasks\.json: task 'one': its reward needs"):
        read(tmp_path, task(reward_basis=["DB", "NL_ASSERTION"]))


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"tasks.json:1: evaluation_criteria.reward_basis"):
        read(tmp_path, task(reward_basis=["LUCK"]))


def test_nested_data_is_merged() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": [2]}) == {
        "a": {"b": 3, "c": 2},
        "d": [2],
    }


def desk(**line: Any) -> Desk:
    row = {"line_id": "L1", "phone_number": "555", "status": "Active", "plan_id": "P1"}
    customer = {"customer_id": "C1", "full_name": "Ada", "date_of_birth": "1990-01-01"}
    db = {
        "plans": [
            {"plan_id": "P1", "data_limit_gb": 5.0, "price_per_month": 40.0,
             "data_refueling_price_per_gb": 2.0}
        ],
        "lines": [{**row, "data_used_gb": 1.0, "data_refueling_gb": 0.0, **line}],
        "bills": [],
        "devices": [],
        "customers": [{**customer, "phone_number": "554", "line_ids": ["L1"], "bill_ids": []}],
    }  # fmt: skip
    rights = {"sms": True, "storage": True, "phone": True, "network": False}
    apps = {"messaging": {"app_name": "messaging", "permissions": rights}}
    found = TELECOM.begin(db, {"device": {"app_statuses": apps}})
    TELECOM.call(found, "user", "set_user_info", {"name": "Ada", "phone_number": "555"})
    return found


def run(found: Desk, name: str, **arguments: Any) -> Any:
    role = "user" if ("user", name) in TELECOM.functions else "assistant"
    return TELECOM.call(found, role, name, arguments)


BREAKS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "airplane mode": (("turn_airplane_mode_on", {}), ("toggle_airplane_mode", {})),
    "no SIM": (("unseat_sim_card", {}), ("reseat_sim_card", {})),
    "data off": (("turn_data_off", {}), ("toggle_data", {})),
    "too slow a network": (
        ("set_network_mode_preference", {"mode": "2g_only"}),
        ("set_network_mode_preference", {"mode": "4g_5g_preferred"}),
    ),
    "data saver": (("turn_data_saver_mode_on", {}), ("toggle_data_saver_mode", {})),
    "a slow VPN": (("break_vpn", {}), ("disconnect_vpn", {})),
    "used up": (
        ("set_data_usage", {"customer_id": "C1", "line_id": "L1", "data_used_gb": 6.0}),
        ("refuel_data", {"customer_id": "C1", "line_id": "L1", "gb_amount": 2.0}),
    ),
}


@pytest.mark.parametrize("cause", BREAKS)
def test_the_phone_is_slow_until_the_cause_is_repaired(cause: str) -> None:
    found = desk()
    broken, repaired = BREAKS[cause]
    fast = {"expected_speed": 200, "expected_desc": "excellent"}
    assert run(found, "assert_internet_speed", **fast)
    run(found, broken[0], **broken[1])
    assert not run(found, "assert_internet_speed", **fast)
    run(found, repaired[0], **repaired[1])
    assert run(found, "assert_internet_speed", **fast)


def test_access_point_settings_come_back_at_the_next_reboot() -> None:
    found = desk()
    run(found, "break_apn_settings")
    assert run(found, "assert_service_status", expected_status="no_service")
    run(found, "reset_apn_settings")
    assert run(found, "assert_service_status", expected_status="no_service")
    run(found, "reboot_device")
    assert run(found, "assert_service_status", expected_status="connected")


def test_roaming_takes_the_carrier_and_the_phone() -> None:
    found = desk()
    run(found, "set_user_location", abroad=True)
    run(found, "toggle_roaming")
    assert run(found, "assert_mobile_data_status", expected_status=False)
    run(found, "enable_roaming", customer_id="C1", line_id="L1")
    assert run(found, "assert_mobile_data_status", expected_status=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("remove_app_permission", {"app_name": "messaging", "permission": "sms"}),
        ("break_apn_mms_setting", {}),
        ("set_wifi_calling", {"enabled": True, "mms_over_wifi": True}),
    ],
)
def test_picture_messages_take_permissions_and_an_address(
    name: str, arguments: dict[str, Any]
) -> None:
    found = desk()
    assert run(found, "assert_can_send_mms", expected_status=True)
    run(found, name, **arguments)
    assert run(found, "assert_can_send_mms", expected_status=False)


def test_a_bill_is_asked_for_paid_and_the_line_resumed() -> None:
    found = desk()
    ids = {"customer_id": "C1", "line_id": "L1"}
    run(found, "suspend_line_for_overdue_bill", **ids, new_bill_id="B9", contract_ended=False)
    assert run(found, "assert_overdue_bill_exists", customer_id="C1", overdue_bill_id="B9")
    run(found, "reboot_device")
    assert run(found, "assert_service_status", expected_status="no_service")
    run(found, "send_payment_request", customer_id="C1", bill_id="B9")
    assert run(found, "check_payment_request")["amount_due"] == 40
    run(found, "make_payment")
    assert run(found, "assert_no_overdue_bill", overdue_bill_id="B9")
    run(found, "resume_line", **ids)
    run(found, "reboot_device")
    assert run(found, "assert_service_status", expected_status="connected")


def test_a_function_that_is_not_there_is_the_authors_fault() -> None:
    with pytest.raises(DefinitionError, match="no function 'fly'"):
        run(desk(), "fly")


def test_both_roles_tools_have_schemas() -> None:
    for domain in (MOCK, TELECOM):
        assert isinstance(domain, Domain)
        environment = tau2_environment("tools/tau2-v1", (), domain)
        assert len(environment.toolbox.schemas) == len(domain.tools) + 1
        assert all(schema.description for schema in environment.toolbox.schemas)


def test_plain_text_ends_the_work_on_a_ticket(tmp_path: Path) -> None:
    one, environment = read(tmp_path, task(actions=[CREATE]))

    async def talk() -> bool:
        async with Episode(environment, no_sandbox) as episode:
            await episode.reset(one, 0)
            call = ToolCall.model_validate(CREATE)
            await episode.step(Message(role="assistant", tool_calls=(call,)))
            return (await episode.step(Message(role="assistant", content="Done."))).reward == 1

    assert asyncio.run(talk())
