"""Silences and maintenance: nothing is sent while they hold, and what is still open is told after them."""

from datetime import timedelta
from pathlib import Path

import pytest

from flows.alerting.silencing import active_silence, check_maintenance
from flows.config.alert_options import AlertSettings, MaintenanceWindow
from metric_core.errors import ConfigError
from tasks.history.catalogue import Catalogue
from tasks.history.operator_log import Silence
from tasks.history.recorded_run import RecordedRun
from tests.flows.alerting.conftest import START, Box, Nights

SUNDAYS = MaintenanceWindow(cron="0 2 * * 0", hours=4)
SUNDAY = START.replace(day=22, hour=2)


def silence(nights: Nights, first: int, last: int) -> None:
    """Silence some nights."""
    begins, ends = (START + timedelta(days=number, hours=hours) for number, hours in ((first, -1), (last, 1)))
    nights.log.silence("support", Silence(begins, ends, "new index"))


def test_a_silence_holds_back_what_is_told_after_it(nights: Nights) -> None:
    nights.run("before", "stays")
    assert nights.webhook.take() == [("opened", "before"), ("opened", "stays")]
    silence(nights, 1, 3)
    nights.run("stays", "inside", "open")
    nights.run("stays", "open")
    nights.run("stays", "open")
    assert nights.webhook.take() == []
    assert len(nights.log.open_incidents("support")) == 2
    nights.run("stays", "open")
    (alert,) = nights.webhook.got
    assert nights.webhook.take() == [("opened", "open"), ("resolved", "before")]
    assert alert.text.endswith("This message is of 2026-11-17 06:00: it was held back by a silence.")
    assert nights.email.take()[2:] == [("opened", "open"), ("resolved", "before")]
    nights.run("stays", "open")
    assert nights.webhook.take() == []


def test_nothing_is_told_of_what_began_and_ended_in_a_silence(nights: Nights, tmp_path: Path) -> None:
    silence(nights, 0, 2)
    nights.run("gate")
    nights.run()
    nights.run("gate")
    nights.run()
    nights.run("other")
    assert nights.webhook.take() == [("opened", "other")], "also if the first run after the silence finds it over"
    assert [each["title"] for each in nights.events] == ["evaluation support has failed its gate"]
    assert not (tmp_path / "alerts.jsonl").exists()


def test_messages_that_wait_are_not_sent_in_a_silence(nights: Nights) -> None:
    nights.webhook.error = Box.refusal
    nights.run("gate")
    nights.webhook.error = None
    silence(nights, 1, 1)
    nights.run("gate")
    assert nights.webhook.take() == []
    nights.run("gate")
    assert nights.webhook.take() == [("opened", "gate")]


def test_one_night_with_a_clock_that_is_ahead_ends_no_silence_and_gives_nothing_up(nights: Nights) -> None:
    catalogue = Catalogue(nights.history)
    for number in range(3):
        began = START + timedelta(days=number)
        catalogue.add(RecordedRun.without_results(f"run-{number}", "support", began, "failed", "", "schedule"))
    nights.webhook.error = Box.refusal
    nights.run("gate")
    silence(nights, 1, 6)
    nights.now = START + timedelta(days=100)
    assert nights.finish("gate").is_silenced
    nights.log.end_silences("support", START + timedelta(days=2))
    assert not any("given up" in each for each in nights.finish("gate").undelivered)
    nights.webhook.error = None
    nights.now = START + timedelta(days=3)
    nights.finish("gate")
    assert nights.webhook.take() == [("opened", "gate")]


def test_a_silence_that_is_ended_holds_no_more(nights: Nights) -> None:
    silence(nights, 0, 9)
    nights.run("gate")
    assert nights.log.end_silences("support", nights.now + timedelta(hours=1)) == 1
    assert nights.log.silences("support", nights.now + timedelta(hours=1)) == []
    nights.run("gate")
    assert nights.webhook.take() == [("opened", "gate")]


def test_maintenance_is_a_silence(nights: Nights) -> None:
    nights.settings = AlertSettings(maintenance=(MaintenanceWindow(cron="0 5 16 11 *", hours=2),))
    nights.run("gate")
    assert nights.webhook.take() == []
    nights.run("gate")
    assert nights.webhook.take() == [("opened", "gate")]


def test_maintenance_that_cannot_be_read_silences_nothing(nights: Nights) -> None:
    nights.settings = AlertSettings(maintenance=(MaintenanceWindow(cron="every sunday", hours=2),))
    nights.run("gate")
    assert nights.webhook.take() == [("opened", "gate")]


@pytest.mark.parametrize(
    ("hours", "holds"), [(-0.01, False), (0, True), (3.99, True), (4, False), (24 * 7, True), (24 * 6, False)]
)
def test_maintenance_holds_from_its_beginning_for_its_length(hours: float, holds: bool) -> None:
    found = active_silence([], [SUNDAYS], SUNDAY + timedelta(hours=hours))
    assert (found is not None) == holds
    assert found is None or found.ends - found.begins == timedelta(hours=4)


def test_maintenance_has_a_time_zone() -> None:
    window = SUNDAYS.model_copy(update={"timezone": "Europe/Berlin"})
    assert active_silence([], [window], SUNDAY - timedelta(hours=1)) is not None
    assert active_silence([], [window], SUNDAY + timedelta(hours=3)) is None


def test_of_several_silences_the_last_end_counts() -> None:
    short, long = (Silence(START, START + timedelta(hours=hours)) for hours in (1, 2))
    assert active_silence([short, long], [], START) == long


def test_maintenance_needs_a_cron_expression() -> None:
    with pytest.raises(ConfigError, match="a cron expression and a time zone, got 'every sunday' in 'UTC'"):
        active_silence([], [MaintenanceWindow(cron="every sunday", hours=1)], START)


@pytest.mark.parametrize(
    ("cron", "hours", "ends"),
    [("* * * * *", 1, False), ("0 2 * * *", 24, False), ("0 2 * * *", 23, True), ("0 0-23 * * 0", 1, True)],
)
def test_maintenance_that_never_ends_is_refused_and_silences_nothing(cron: str, hours: float, ends: bool) -> None:
    window = MaintenanceWindow(cron=cron, hours=hours)
    if ends:
        check_maintenance([window], START)
        return
    with pytest.raises(ConfigError, match="maintenance never ends"):
        check_maintenance([window], START)
    with pytest.raises(ConfigError, match="maintenance never ends"):
        active_silence([], [window], START)
