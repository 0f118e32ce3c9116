"""The tables of the office: mail, calendar, contacts, tasks and customer relations."""

from gymsuite.worlds.schema import Column, Schema, Table


def _ref(name: str, table: str) -> Column:
    return Column(name, ref=table)


def _record(name: str, prefix: str) -> Table:
    """What became of a request that was not carried out."""
    columns = (Column("request"), Column("reason"), Column("at", "time"))
    return Table(name, prefix, columns, natural=("request",))


SCHEMA = Schema(
    (
        Table(
            "contacts",
            "CON",
            (
                Column("name", "casefold"),
                Column("email", "casefold"),
                Column("firm", "casefold"),
                Column("zone"),
                Column("phone"),
            ),
        ),
        Table(
            "mails",
            "MSG",
            (
                Column("folder"),
                Column("sender", "casefold"),
                Column("recipient", "addresses"),
                Column("subject", "casefold"),
                Column("body", "text"),
                Column("label"),
                Column("at", "time"),
            ),
        ),
        Table(
            "tasks",
            "TSK",
            (
                Column("title", "casefold"),
                Column("due_on"),
                _ref("assignee_id", "contacts"),
                Column("status"),
            ),
        ),
        Table(
            "accounts",
            "ACC",
            (Column("name", "casefold"), Column("tier"), Column("bank", "casefold")),
        ),
        Table(
            "deals",
            "DEA",
            (
                _ref("account_id", "accounts"),
                Column("title", "casefold"),
                Column("stage"),
                Column("amount_cents", "cents"),
                _ref("seller_id", "contacts"),
            ),
        ),
        Table(
            "activities",
            "ACT",
            (
                _ref("account_id", "accounts"),
                Column("kind"),
                Column("note", "text"),
                Column("at", "time"),
            ),
            natural=("account_id", "kind"),
        ),
        Table(
            "events",
            "EVT",
            (
                Column("title", "casefold"),
                Column("starts_at"),
                Column("minutes"),
                _ref("organizer_id", "contacts"),
                Column("status"),
            ),
        ),
        Table(
            "series",
            "SER",
            (
                Column("title", "casefold"),
                Column("first_day"),
                Column("start"),
                Column("zone"),
                Column("minutes"),
                Column("every_days"),
                Column("times"),
                _ref("organizer_id", "contacts"),
            ),
        ),
        Table(
            "occurrences",
            "OCC",
            (
                _ref("series_id", "series"),
                Column("on_day"),
                Column("status"),
                Column("starts_at"),
            ),
            natural=("series_id", "on_day"),
        ),
        Table(
            "attendees",
            "ATT",
            (_ref("meeting_id", "series"), _ref("contact_id", "contacts")),
            natural=("meeting_id", "contact_id"),
        ),
        _record("declines", "DEC"),
        _record("handovers", "HOV"),
        Table(
            "reports",
            "REP",
            (_ref("mail_id", "mails"), Column("at", "time")),
            natural=("mail_id",),
        ),
    )
)
