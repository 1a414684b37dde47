"""Every recipient is told every beginning and every end once and in order, whatever fails on the way."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from flows.alerting import delivery, delivery_round
from flows.alerting.alert import Alert
from tasks.history.alert_log import AlertLog
from tasks.history.operator_log import Silence
from tasks.runtime.retry import Backoff
from tests.flows.alerting.conftest import START, Box, Nights

Crash: TypeAlias = Literal["", "written", "accepted", "sent"]


class CrashError(BaseException):
    """The death of the process."""


@dataclass(frozen=True)
class Night:
    """A night.

    Args:
        found: Incidents that are found.
        failing: Recipients that accept nothing.
        is_silent: True if messages are silenced.
        crash: Step after which the process dies: the messages were written, a recipient accepted one, all were sent.
    """

    found: frozenset[str]
    failing: frozenset[str]
    is_silent: bool
    crash: Crash


NIGHTS = st.lists(
    st.builds(
        Night,
        st.frozensets(st.sampled_from("abc")),
        st.frozensets(st.sampled_from(["webhook", "email"])),
        st.booleans(),
        st.sampled_from(["", "", "", "written", "accepted", "sent"]),
    ),
    min_size=1,
    max_size=7,
)


def changes_to_tell(nights: Sequence[Night]) -> dict[str, list[str]]:
    """Return the changes that each recipient is told, by incident.

    That is all but the pairs that begin in a silence, and end in it or by the first run after it.
    """
    told: dict[str, list[str]] = {}
    for key in "abc":
        changes: list[tuple[str, int]] = []  # with the number of the silence, or 0
        silences, was_open, was_silent = 0, False, False
        for night in nights:
            silences += night.is_silent and not was_silent
            place = silences if night.is_silent else 0
            if (key in night.found) != was_open:
                change = "resolved" if was_open else "opened"
                is_held_back = place or was_silent
                if change == "resolved" and is_held_back and changes and changes[-1] == ("opened", silences):
                    changes.pop()
                else:
                    changes.append((change, place))
            was_open, was_silent = key in night.found, night.is_silent
        told[key] = [change for change, _ in changes]
    return told


def changes_in(alerts: Sequence[Alert]) -> dict[str, list[str]]:
    """Return the changes in alerts by incident."""
    found: dict[str, list[str]] = {key: [] for key in "abc"}
    for alert in alerts:
        for each in alert.incidents:
            found[each.key.removeprefix("support/")].append(each.change)
    return found


def first_of_each(alerts: Sequence[Alert]) -> list[Alert]:
    """Return the alerts as a receiver has them that leaves out those whose id it knows."""
    return list({alert.id: alert for alert in alerts}.values())


@pytest.mark.simulation
@settings(max_examples=25)
@given(NIGHTS)
def test_every_recipient_is_told_every_change_once_and_in_order(plan: list[Night]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", folder)
        patch.setattr(delivery, "BACKOFF", Backoff(first=0.0, longest=0.0))
        patch.setattr(delivery, "TRIES", 2)
        patch.setattr(delivery_round, "LEASE_SECONDS", 0.0)
        nights = Nights(str(Path(folder, "history.db")), patch)
        for night in plan:
            live_through(nights, night)
        quiet = Night(plan[-1].found, frozenset(), False, "")
        live_through(nights, quiet)
        wanted = changes_to_tell([*plan, quiet])
        for box in nights.boxes:
            alerts = first_of_each(box.got)
            if all(night.crash != "accepted" for night in plan):
                assert alerts == box.got
            assert changes_in(alerts) == wanted
        live_through(nights, quiet)
        assert [changes_in(first_of_each(box.got)) for box in nights.boxes] == [wanted] * 2
        event(f"crashes: {sum(bool(night.crash) for night in plan)}")


def live_through(nights: Nights, night: Night) -> None:
    """Run a night; if the process dies in it, the run is resumed."""
    begins = START + timedelta(days=nights.number)
    if night.is_silent:
        nights.log.silence("support", Silence(begins, begins + timedelta(hours=1)))

    def check(_alert: Alert) -> None:
        assert not night.is_silent

    for box in nights.boxes:
        box.before, box.error = check, Box.refusal if box.name in night.failing else None
    with pytest.MonkeyPatch.context() as deadly:
        if night.crash == "accepted":
            nights.webhook.after = die
        elif night.crash:
            step = "report" if night.crash == "written" else "find_undelivered"
            work = getattr(AlertLog, step)
            deadly.setattr(AlertLog, step, lambda *given, **more: die(work(*given, **more)))
        try:
            nights.run(*night.found)
        except CrashError:
            deadly.undo()
            nights.webhook.after = lambda _alert: None
            nights.finish(*night.found)


def die(_result: object) -> None:
    raise CrashError
