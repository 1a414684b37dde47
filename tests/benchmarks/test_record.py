"""The pages of a month against what its script saw: a page that is right, and pages that are wrong in one figure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.month.ledger import Entry, begins
from benchmarks.month.receivers import Message
from benchmarks.month.record import (
    Page,
    SeenRun,
    check_beats,
    check_escalations,
    compare_page,
    due_dates,
    incidents_of,
    read_page,
)
from tasks.history.availability import measure_availability
from tasks.history.recorded_run import MISSED
from tasks.reports.history.history_page import history_page
from tests.tasks.history.recorded import month

NIGHT, SECOND = timedelta(days=1), timedelta(seconds=1)
START = datetime(2026, 11, 18, 6, tzinfo=UTC)
RUNS = [
    SeenRun("finished", START, START + 60 * SECOND, 0.9, 1),
    SeenRun("failed", START + NIGHT, START + NIGHT + 60 * SECOND),
    SeenRun("missed", START + 2 * NIGHT, START + 2 * NIGHT),
    SeenRun("finished", START + 3 * NIGHT, START + 3 * NIGHT + 60 * SECOND, 0.85),
]
PAGE = Page(
    times=tuple(run.begun + SECOND for run in RUNS),
    kinds=tuple(run.kind for run in RUNS),
    means=(0.9, None, None, 0.85),
    incidents=((1, 3),),
    due=(4, 2, 1, 1),
)


def message(night: int, change: str, key: str = "error:1", by: str = "HTTP", late: timedelta = NIGHT) -> Message:
    found = START + night * NIGHT + 50 * SECOND
    return Message("support", by, found + late, found, "title", "text", ((f"support/{key}", change),))


TOLD = [message(1, "opened"), message(3, "resolved"), message(2, "opened", "missed runs")]


def test_page_that_shows_what_was_seen_and_told() -> None:
    assert compare_page(PAGE, RUNS, incidents_of(TOLD, [])) == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (replace(PAGE, means=(0.9, None, None, 0.86)), "has the mean 0.86, not 0.8500"),
        (
            replace(PAGE, kinds=("finished", "failed", "failed", "finished")),
            "2 finished, 2 failed, 0 missed on the page",
        ),
        (replace(PAGE, due=(4, 3, 0, 1)), "availability of (4, 3, 0, 1) on the page"),
        (replace(PAGE, times=(START - NIGHT, *PAGE.times[1:])), "is not on the page"),
        (replace(PAGE, incidents=((1, None),)), "incidents from run 1 to None are on the page, and were not told so"),
        (replace(PAGE, incidents=()), "incidents from run 1 to 3 were told, and are not so on the page"),
    ],
)
def test_figure_that_is_wrong_is_named(page: Page, words: str) -> None:
    found = compare_page(page, RUNS, incidents_of(TOLD, []))
    assert any(words in each for each in found), found


def test_silenced_incident_is_on_the_page_alone() -> None:
    nights = [Entry("support", "", True, (), START, ended=START + n * NIGHT, is_silenced=True) for n in (1, 3)]
    assert incidents_of([], nights) == [(nights[0].ended, nights[1].ended)]


def test_heartbeats_and_escalations_are_counted() -> None:
    assert [*check_beats(RUNS, [START + 59 * SECOND])] == []
    assert [each.partition(" sent ")[2] for each in check_beats(RUNS, [])] == ["0 heartbeats, not 1"]
    away = Entry("support", "the webhook is away", True, begins("error:.*"), START, is_reachable=False)
    assert [*check_escalations([away], [message(1, "opened", by="escalation")])] == []
    assert [*check_escalations([away], TOLD)] == ["0 incidents were escalated, and 1 were not delivered"]


def test_dates_of_a_schedule() -> None:
    dates = due_dates(START + timedelta(minutes=58), START + timedelta(minutes=65), range(1, 60, 3))
    assert [date.minute for date in dates] == [58, 1, 4]


def test_the_figures_of_a_page_are_read() -> None:
    runs, incidents = month()
    now = runs[-1].created + timedelta(hours=1)
    figures = measure_availability(runs, now)
    page = read_page(history_page("nightly", runs, incidents, lambda *_: None, availability=figures))
    assert [time.replace(microsecond=0) for time in page.times] == [run.created.replace(microsecond=0) for run in runs]
    assert page.kinds.count("missed") == sum(run.status == MISSED for run in runs)
    assert page.due == (figures[0].due, figures[0].finished, figures[0].failed, figures[0].missed)
    means = [metric.mean if (metric := run.metric("faithfulness")) else None for run in runs]
    assert page.means == tuple(None if mean is None else round(mean, 4) for mean in means)
    assert len(page.incidents) == len(incidents)
