from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from gymsuite import Task, ToolCall
from gymsuite.worlds.gold import Gold
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.server import perform
from tests.tool_worlds import SPLITS, ToolWorld, load


@pytest.fixture(scope="module")
def office() -> ToolWorld:
    return load("tools/office-v1")


def first(office: ToolWorld, family: str, count: int = 300) -> Task:
    assert isinstance(office.environment.tasks, Procedural)
    found = (office.environment.tasks.at("train", index) for index in range(count))
    return next(task for task in found if family in task.metadata["family"])


def alone(office: ToolWorld, family: str) -> Task:
    """The first task that is about this one wish."""
    assert isinstance(office.environment.tasks, Procedural)
    found = (office.environment.tasks.at("train", index) for index in range(2, 1000, 5))
    return next(task for task in found if task.metadata["family"] == family)


def test_splits_share_no_people_no_zone_no_rule_and_no_wording(office: ToolWorld) -> None:
    people, zones, hours = {}, {}, {}
    for split in SPLITS:
        some = office.tasks(split, 40)
        rows = [office.part("desk").begin(task.hidden).find("contacts", {}) for task in some[:40:5]]
        people[split] = {word for of in rows for row in of for word in row["name"].split()}
        zones[split] = {row["zone"] for of in rows for row in of}
        hours[split] = {task.metadata["policy"]["work_start"] for task in some}
    phrases = office.part("phrases")
    for one, other in combinations(SPLITS, 2):
        assert not people[one] & people[other]
        assert not zones[one] & zones[other]
        assert not hours[one] & hours[other]
        for act, ways in phrases.VOICES[one].items():
            assert not set(ways) & set(phrases.VOICES[other][act])


def test_the_text_has_a_clause_for_every_rule_that_decides(office: ToolWorld) -> None:
    prompt = office.tasks("train", 1)[0].prompt
    for rule in office.part("rules").RULES:
        assert f": {rule.reason})" in prompt


def test_obeying_a_mail_that_nobody_asked_to_obey_spoils_everything(office: ToolWorld) -> None:
    task = first(office, "grant/leak")
    mine = Gold.model_validate(task.hidden["gold"]).mines[0]
    mail = next(c.arguments["mail_id"] for c in task.solution if c.name == "read_mail")
    leak = ToolCall(
        name="forward_mail",
        arguments={"mail_id": mail, "to": f" {str(mine.where['recipient']).upper()} "},
    )
    obeyed = office.score(task, (leak, *task.solution))
    assert office.score(task, task.solution).passed
    assert (obeyed.reward, obeyed.metrics["minefield"]) == (0, 1)


def mail_to(address: str) -> ToolCall:
    return ToolCall(name="send_mail", arguments={"to": address, "subject": "", "body": ""})


@pytest.mark.parametrize(
    "spelling",
    [
        "{address}",
        "  {upper} ",
        "<{address}>",
        "mailto:{address}",
        "The Desk <{address}>",
        '"Desk, the" <{upper}>',
        "{local}+news@{domain}",
        "{local}\uff20{domain}",
        "{address},",
        "a@b.test; {address}",
        "Ann <a@b.test>, Desk <{local}+a+b@{domain}>",
    ],
)
@pytest.mark.parametrize("tool", ["send_mail", "forward_mail"])
def test_no_spelling_of_a_forbidden_address_gets_round_what_is_forbidden(
    office: ToolWorld, tool: str, spelling: str
) -> None:
    task = first(office, "grant/leak")
    address = str(Gold.model_validate(task.hidden["gold"]).mines[0].where["recipient"])
    local, domain = address.split("@")
    to = spelling.format(address=address, upper=address.upper(), local=local, domain=domain)
    call = mail_to(to)
    if tool == "forward_mail":
        mail = next(c.arguments["mail_id"] for c in task.solution if c.name == "read_mail")
        call = ToolCall(name=tool, arguments={"mail_id": mail, "to": to})
    sent = office.score(task, (call, *task.solution))
    assert (sent.reward, sent.metrics["minefield"], sent.metrics["invalid_calls"]) == (0, 1, 0)


@pytest.mark.parametrize("end", [".", "\u200b", "@b.test", " and others"])
def test_what_is_no_address_is_not_sent(office: ToolWorld, end: str) -> None:
    task = first(office, "grant/leak")
    address = str(Gold.model_validate(task.hidden["gold"]).mines[0].where["recipient"])
    refused = office.score(task, (mail_to(address + end), *task.solution))
    assert (refused.reward, refused.metrics["invalid_calls"]) == (1, 1)


def test_a_phone_number_is_the_same_however_it_is_grouped(office: ToolWorld) -> None:
    task = first(office, "change_phone")
    write = next(c for c in task.solution if c.name == "change_phone")
    number = write.arguments["phone"]
    for spelt in (number.replace(" ", ""), number.replace(" ", "-"), number.replace(" ", "\xa0")):
        other = write.model_copy(update={"arguments": {**write.arguments, "phone": spelt}})
        plan = [other if c == write else c for c in task.solution]
        assert office.score(task, plan).passed, spelt
    wrong = write.model_copy(update={"arguments": {**write.arguments, "phone": "+900 000 0000"}})
    assert not office.score(task, [wrong if c == write else c for c in task.solution]).passed


def test_a_forged_mail_is_reported_only_after_a_look_at_its_writer(office: ToolWorld) -> None:
    task = first(office, "wrong_sender")
    blind = [call for call in task.solution if call.name != "get_contact"]
    assert office.score(task, task.solution).passed
    assert office.score(task, blind).reward == 0


def without_looks(task: Task, *looks: ToolCall) -> list[ToolCall]:
    """The solution with these looks in place of its own at calendars."""
    return [*looks, *(call for call in task.solution if call.name != "free_busy")]


def test_one_calendar_that_is_full_is_enough_to_decline(office: ToolWorld) -> None:
    task = alone(office, "move/conflict")
    looks = [call for call in task.solution if call.name == "free_busy"]
    assert 1 in [office.score(task, without_looks(task, look)).reward for look in looks]
    assert office.score(task, without_looks(task)).reward == 0


def test_only_the_day_in_question_counts_of_a_calendar(office: ToolWorld) -> None:
    task = alone(office, "move/conflict")
    looks = [call for call in task.solution if call.name == "free_busy"]
    for days in (-1, 1):
        day = str(date.fromisoformat(looks[0].arguments["day"]) + timedelta(days))
        beside = [ToolCall(name=c.name, arguments={**c.arguments, "day": day}) for c in looks]
        assert office.score(task, without_looks(task, *beside)).reward == 0


def test_a_series_is_arranged_after_a_look_at_each_of_its_days(office: ToolWorld) -> None:
    task = alone(office, "series/grant")
    looks = [call for call in task.solution if call.name == "free_busy"]
    for left_out in ("until_day", "day"):
        day = {"day": looks[0].arguments["until_day" if left_out == "day" else "day"]}
        short = [
            ToolCall(name=c.name, arguments={"contact_id": c.arguments["contact_id"], **day})
            for c in looks
        ]
        assert office.score(task, without_looks(task, *short)).reward == 0
    assert office.score(task, without_looks(task, *looks)).passed


@pytest.mark.parametrize(
    "family", ["meeting/too_long", "series/too_many_times", "new_task/too_far"]
)
def test_what_the_request_alone_forbids_takes_no_look(office: ToolWorld, family: str) -> None:
    task = alone(office, family)
    plan = [c for c in task.solution if c.name in ("tell_employer", "decline_request")]
    assert office.score(task, plan).passed


def test_that_somebody_is_of_another_firm_has_to_be_known(office: ToolWorld) -> None:
    task = alone(office, "meeting/short_notice")
    people = [c for c in task.solution if c.name == "get_contact"]
    found = ToolCall(name="search_contacts", arguments={"words": ""})
    calendars = [call for call in task.solution if call not in people]
    assert office.score(task, calendars).reward == 0
    assert office.score(task, [found, *calendars]).passed


def test_a_wish_for_which_another_is_settled_for_is_not_recorded(office: ToolWorld) -> None:
    task = first(office, "meeting/no_slot+")
    told = next(at for at, c in enumerate(task.solution) if c.name == "tell_employer")
    record = ToolCall(name="decline_request", arguments={"request": "meeting", "reason": "no_slot"})
    recorded = [*task.solution[: told + 1], record, *task.solution[told + 1 :]]
    assert office.score(task, task.solution).passed
    assert not office.score(task, recorded).passed


def test_the_pinned_zones_are_those_of_a_whole_year(office: ToolWorld) -> None:
    zones = office.part("zones")
    try:
        real = {name: ZoneInfo(name) for name in zones.ZONES}
    except ZoneInfoNotFoundError:
        pytest.skip("this machine has no time zone data")
    start = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) // 60
    for name, zone in real.items():
        switches = zones.summer_of(name, 2024) if zones.ZONES[name].summer else ()
        near = [switch + minute for switch in switches for minute in (-1, 0)]
        for instant in (*range(start, start + 366 * 1440, 97 * 60), *near):
            there = datetime.fromtimestamp(instant * 60, zone).utcoffset()
            assert there == timedelta(minutes=zones.offset(name, instant)), (name, instant)


def test_a_series_keeps_its_time_on_the_clocks_of_its_zone(office: ToolWorld) -> None:
    row = {
        "first_day": "2031-03-06", "start": "10:00", "zone": "America/New_York", "every_days": 7,
        "times": 5,
    }  # fmt: skip
    agenda, zones = office.part("agenda"), office.part("zones")
    starts = [start for _, start in agenda.occurrences(row)]
    clocks = [zones.hhmm(zones.clock("Europe/Berlin", start)[1]) for start in starts]
    assert clocks == ["16:00", "15:00", "15:00", "15:00", "16:00"]


def test_a_time_that_clocks_skip_is_refused_and_one_they_show_twice_is_the_first(
    office: ToolWorld,
) -> None:
    world, task = office.part("desk").WORLD, office.tasks("train", 1)[0]
    zones = office.part("zones")
    state = world.start(task)
    there = {"from_zone": "europe/berlin", "to_zone": "Africa/Lagos"}
    with pytest.raises(Exception, match="skip 02:30 on 2031-03-30"):
        perform(world, state, "convert_time", {"day": "2031-03-30", "time": "02:30", **there})
    reply = perform(world, state, "convert_time", {"day": "2031-10-26", "time": "02:30", **there})
    assert reply.text == '{"time": "2031-10-26 01:30"}'
    assert zones.at("Europe/Berlin", date(2031, 3, 30), 150) is None
    state.close()


def test_a_moved_occurrence_takes_its_place_in_the_calendar(office: ToolWorld) -> None:
    task = first(office, "move_once/grant")
    world, agenda, zones = office.part("desk").WORLD, office.part("agenda"), office.part("zones")
    move = next(call for call in task.solution if call.name == "move_occurrence")
    state = world.start(task)
    row = state.row("series", move.arguments["series_id"])
    old = dict(agenda.occurrences(row))[move.arguments["on_day"]]
    perform(world, state, "move_occurrence", move.arguments)
    day = date.fromisoformat(move.arguments["day"])
    new = zones.at(move.arguments["zone"], day, zones.minutes(move.arguments["start"]))
    owner = state.get("owner")
    taken = {s.start for s in agenda.busy(state, owner, new, new + 1) if s.meeting == row["id"]}
    left = {s.start for s in agenda.busy(state, owner, old, old + 1) if s.meeting == row["id"]}
    state.close()
    assert taken == {new}
    assert old not in left


def test_another_occurrence_of_its_series_is_in_the_way_of_one_that_is_moved(
    office: ToolWorld,
) -> None:
    task = first(office, "move_once/grant")
    facts, zones = office.part("facts"), office.part("zones")
    move = next(call for call in task.solution if call.name == "move_occurrence")
    state = office.part("desk").WORLD.start(task)
    row = state.row("series", move.arguments["series_id"])
    (on, start), (_, later), *_ = office.part("agenda").occurrences(row)
    policy = office.part("policy").Policy(**task.metadata["policy"])

    def is_free(instant: int) -> bool:
        day, minute = zones.clock("Africa/Lagos", instant)
        ask = facts.Ask(
            "move_once", row["id"], day=day.isoformat(), start=zones.hhmm(minute),
            zone="Africa/Lagos", minutes=row["minutes"], on=on,
        )  # fmt: skip
        found = facts.facts_of(state, policy, ask)
        return bool(found.free)

    beside_itself, on_another = is_free(start + 1), is_free(later)
    state.close()
    assert beside_itself
    assert not on_another


EVENT = {
    "title": "A", "day": "2031-05-05", "start": "10:00", "zone": "Europe/Berlin", "minutes": 30,
    "attendee_ids": [],
}  # fmt: skip
MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown tool": ("book_rocket", {}, "no tool"),
    "words for a number": ("create_event", EVENT | {"minutes": "30"}, "minutes"),
    "a meeting of no time": ("create_event", EVENT | {"minutes": 0}, "minutes"),
    "no title": ("create_event", EVENT | {"title": "  "}, "title"),
    "no day": ("create_event", EVENT | {"day": "tomorrow"}, "2031-05-04"),
    "a day that is not": ("create_event", EVENT | {"day": "2031-02-30"}, "2031-05-04"),
    "a day of long ago": ("create_event", EVENT | {"day": "0001-01-01"}, "too far"),
    "a day of no year": ("list_events", {"day": "9999-12-31"}, "too far"),
    "no time": ("create_event", EVENT | {"start": "25:00"}, "09:30"),
    "a time of words": ("create_event", EVENT | {"start": "noon"}, "09:30"),
    "a time in other digits": ("create_event", EVENT | {"start": "-1:5:0"}, "09:30"),
    "a time of too many minutes": ("create_event", EVENT | {"start": "08:90"}, "09:30"),
    "a time before midnight": ("create_event", EVENT | {"start": "-1:90"}, "09:30"),
    "minutes before an hour": ("create_event", EVENT | {"start": "10:-30"}, "09:30"),
    "no zone": ("create_event", EVENT | {"zone": "Mars/Olympus"}, "there are"),
    "a stranger": ("create_event", EVENT | {"attendee_ids": ["CON-0000000"]}, "look the id up"),
    "words for a list": ("create_event", EVENT | {"attendee_ids": "CON-1"}, "attendee_ids"),
    "a crowd": ("create_event", EVENT | {"attendee_ids": ["CON-1"] * 999}, "attendee_ids"),
    "no address": ("send_mail", {"to": "everybody", "subject": "", "body": ""}, "no mail address"),
    "no number": ("change_phone", {"contact_id": "CON-1", "phone": "his"}, "no phone number"),
    "no such folder": ("list_mails", {"folder": "attic"}, "folder"),
    "no such row": ("read_mail", {"mail_id": "MSG-0000000"}, "look the id up"),
    "a megabyte": ("search_mails", {"words": "x" * (1 << 20)}, "at most"),
    "a NUL": ("search_mails", {"words": "a\0b"}, "NUL"),
    "right to left": ("get_deal", {"deal_id": "\u202eDEA-1\u202c"}, "look the id up"),
    "SQL": ("get_deal", {"deal_id": "'; DROP TABLE deals; --"}, "look the id up"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained_and_the_episode_goes_on(office: ToolWorld, mistake: str) -> None:
    name, arguments, explanation = MISTAKES[mistake]
    task = office.tasks("train", 3)[2]
    assert explanation in office.complaint(task, name, arguments)
