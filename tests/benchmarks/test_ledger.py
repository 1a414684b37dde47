"""The account of a month's messages: silent, lost, doubled and false ones are found."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.month.ledger import Account, Entry, begins, ends, settle
from benchmarks.month.receivers import Message

START = datetime(2026, 11, 18, 6, tzinfo=UTC)
STORY = [("the source is missing", begins("error:.*")), ("it is back", ends("error:.*"))]
OPENED, RESOLVED = ("support/error:1", "opened"), ("support/error:1", "resolved")


def message(night: int, *changes: tuple[str, str], by: str = "HTTP", text: str = "") -> Message:
    """Return a message that arrives after a night."""
    time = START + timedelta(days=night, minutes=1)
    return Message("support", by, time, time, f"night {night}", f"night {night}\n{text}", changes)


def account(*messages: Message) -> Account:
    """Return the account of a story in which the source is missing on the first night."""
    entries = [
        Entry("support", what, bool(night), expected, START + timedelta(days=night))
        for night, (what, expected) in enumerate(STORY)
    ]
    return settle(entries, messages, ("HTTP", "SMTP"))


def test_messages_as_expected_leave_nothing_wrong() -> None:
    late = message(1, by="SMTP", text="This message could not be delivered since 06:00.\n")
    told = (message(0, OPENED), message(0, by="SMTP"), message(1, RESOLVED), late)
    assert account(*told) == Account()


def test_entries_have_the_messages_to_each_recipient() -> None:
    entries = [
        Entry("support", "no source", True, begins("error:.*"), START + timedelta(days=night)) for night in (0, 5)
    ]
    told = [message(night, OPENED, by=by) for night in (0, 5) for by in ("HTTP", "SMTP")]
    settle(entries, told, ("HTTP", "SMTP"))
    assert [[each.by for each in entry.told] for entry in entries] == [["HTTP", "SMTP"]] * 2
    assert [{each.time for each in entry.told} for entry in entries] == [{told[0].time}, {told[2].time}]


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ((message(0, OPENED), message(0, by="SMTP")), {"silent": 1}),
        ((message(0, OPENED), message(0, by="SMTP"), message(1, RESOLVED)), {"lost": 1}),
        (
            (
                *(message(0, OPENED), message(0, by="SMTP"), message(1, RESOLVED), message(1, by="SMTP")),
                *(message(2, OPENED), message(2, by="SMTP")),
            ),
            {"doubled": 1},
        ),
        (
            (
                *(message(0, OPENED), message(0, by="SMTP"), message(1, RESOLVED), message(1, by="SMTP")),
                *(message(2, ("support/missed runs", "opened")), message(2, by="SMTP")),
            ),
            {"false": 1},
        ),
        (
            (
                message(0, OPENED),
                message(0, by="SMTP"),
                message(0, by="SMTP"),
                message(1, RESOLVED),
                message(1, by="SMTP"),
            ),
            {"doubled": 1},
        ),
        ((message(0, OPENED), message(0, by="SMTP"), message(0, RESOLVED), message(0, by="SMTP")), {"silent": 1}),
    ],
    ids=["silent", "lost", "doubled change", "false", "doubled mail", "too early"],
)
def test_what_is_wrong_is_counted(told: tuple[Message, ...], wrong: dict[str, int]) -> None:
    found = account(*told)
    counts = {name: len(getattr(found, name)) for name in ("silent", "lost", "doubled", "false")}
    assert {name: counts[name] for name in wrong} == wrong
