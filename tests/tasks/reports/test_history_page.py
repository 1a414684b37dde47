"""The page of a history: what its script gets, its size, and texts that attack it."""

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from metric_core.errors import ConfigError
from tasks.history.availability import measure_availability
from tasks.history.recorded_run import RecordedRun, RunDetails
from tasks.reports.history.history_page import history_page
from tasks.reports.history.history_text import change_lines, table_of_metrics
from tasks.reports.history.history_view import MOST_SLICE_VALUES, link_pages
from tests.tasks.history.recorded import FIGURES, METRICS, month, nights, open_incident, rebuilt
from tests.tasks.reports.folders import ATTACK


def no_report(run: RecordedRun, page: str) -> None:
    del run, page


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="history-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found.group(1))
    return content


def test_the_script_gets_a_list_per_figure() -> None:
    data = data_of(history_page("nightly", nights(12), [open_incident()], no_report))
    assert data["time"][1] - data["time"][0] == 86_400
    assert data["accepted"] == [0]
    assert data["baseline"] == [-1, *[0] * 11]
    assert data["gate"] == [1] * 9 + [2, 1, 1]
    assert data["metrics"][0]["key"] == "faithfulness"
    assert data["metrics"][0]["mean"][:2] == [6000, 6133]
    assert data["metrics"][0]["low"][0] == 5700
    assert data["metrics"][0]["failed"] == [4] * 12
    assert data["alarms"] == {
        "9": [{"metric": "faithfulness", "slice": None, "since": None, "text": "faithfulness is worse "}]
    }
    assert (data["incidents"][0]["opened"], data["incidents"][0]["closed"]) == (1, None)
    assert len(data["metrics"]) == len(METRICS)


def test_runs_with_other_questions_name_the_run_before_and_the_figures_of_the_questions_of_both() -> None:
    runs = rebuilt(3)
    data = data_of(history_page("nightly", runs, [], no_report))
    assert data["kept"] == {"2": {"from": 1, "figures": FIGURES}}
    assert data["changes"]["2"][0][0] == "data"
    assert data["changes"]["2"][0][1].startswith("questions and references changed: 24 as in the run of 2026-03-02")
    assert data_of(history_page("nightly", runs[2:], [], no_report))["kept"]["0"]["from"] == -1
    headings = [column.heading for column in table_of_metrics(runs, ["faithfulness"]).columns]
    assert headings == ["mean of", "03-01 06:00", "03-02 06:00", "*03-03 06:00"]


def test_runs_without_results_are_gaps_with_their_reasons() -> None:
    runs, incidents = month()
    data = data_of(history_page("nightly", runs, incidents, no_report))
    gaps = [place for place, run in enumerate(runs) if run.status != "completed"]
    assert len(gaps) == 7
    for metric in data["metrics"]:
        assert [place for place, mean in enumerate(metric["mean"]) if mean is None] == gaps
    outcomes = {place: data["outcome"][str(place)] for place in gaps}
    assert list(outcomes.values()) == [
        "did not start",
        "did not start",
        "missed",
        "missed",
        *["did not finish"] * 2,
        "missed",
    ]
    kinds = {"did not finish": 0, "did not start": 1, "missed": 2}
    assert data["absent"] == {str(place): kind for place in gaps if (kind := kinds[outcomes[place]])}
    for place in gaps:
        assert data["message"][str(place)] == runs[place].reason


def test_messages_that_were_not_delivered_are_named() -> None:
    """A run with a result has them in its outcome, one without in its details."""
    sentence = "the webhook has not accepted a message since 2026-03-01 06:00: it replied with status 500"
    good = next(run for run in nights(2) if run.outcome is not None)
    assert good.outcome is not None
    outcome = good.outcome.model_copy(update={"undelivered": (sentence,), "message": "all is well"})
    failed = RecordedRun.without_results(
        "2", "nightly", good.created + timedelta(days=1), "failed", "no file", "schedule"
    )
    runs = [replace(good, outcome=outcome), replace(failed, details=RunDetails(undelivered=(sentence,)))]
    messages = data_of(history_page("nightly", runs, [], no_report))["message"]
    assert messages == {"0": f"all is well (not delivered: {sentence})", "1": f"no file (not delivered: {sentence})"}
    assert [line.partition("  ")[2] for line in change_lines(runs) if "not delivered" in line] == [
        f"not delivered: {sentence}"
    ] * 2
    assert not any("not delivered" in line for line in change_lines(nights(12)))


def test_incidents_begin_and_end_at_the_runs_that_found_it() -> None:
    """Expected places are those of the runs by id, or the latest that had begun, looked up one by one."""
    runs, incidents = month()

    def place(run_id: str, time: datetime) -> int:
        own = [at for at, run in enumerate(runs) if run.run_id == run_id]
        return own[0] if own else len([run for run in runs if run.created <= time]) - 1

    data = data_of(history_page("nightly", runs, incidents, no_report))
    for shown, incident in zip(data["incidents"], incidents, strict=True):
        assert shown["opened"] == place(incident.run_id, incident.opened)
        assert shown["closed"] == (incident.closed and place(incident.closing_run_id, incident.closed))
    by_run = {shown["text"]: (shown["opened"], shown["closed"]) for shown in data["incidents"]}
    assert by_run == {
        "no such file: answers.jsonl": (5, 7),
        "faithfulness is worse": (11, 16),
        "the answers have been the same for 3 days": (14, 20),
        "the judge is down": (22, 24),
        "3 runs were missed": (29, None),
    }
    later = data_of(history_page("nightly", runs[12:], incidents, no_report))
    assert [(each["opened"], each["closed"]) for each in later["incidents"][:3]] == [(-1, -1), (-1, 4), (2, 8)]


def test_availability_is_that_of_the_entries() -> None:
    runs, incidents = month()
    now = runs[-1].created + timedelta(hours=1)
    page = history_page("nightly", runs, incidents, no_report, availability=measure_availability(runs, now))
    pattern = r"last (\d+) days: (\d+) of (\d+) scheduled runs have a result \(([\d.]+) %\), (\d+) failed, (\d+) missed"
    rows = re.findall(pattern, page)
    for row, days in zip(rows, (7, 30, 90), strict=True):
        due = [run for run in runs if run.trigger == "schedule" and now - timedelta(days=days) < run.created <= now]
        finished, missed = (sum(run.status == status for run in due) for status in ("completed", "missed"))
        counts = [days, finished, len(due), len(due) - finished - missed, missed]
        assert [*row[:3], *row[4:]] == [*map(str, counts)]
        assert float(row[3]) == pytest.approx(100 * finished / len(due), abs=0.1)


def test_slices_are_those_of_the_latest_run_that_has_some() -> None:
    runs = [*nights(3, METRICS[:1], slices=1), month()[0][-1]]
    (shown,) = data_of(history_page("nightly", runs, [], no_report))["slices"]
    assert (shown["mean"][-1], shown["last"][0], shown["scored"]) == (None, shown["mean"][2], 490)


def test_changes_are_at_the_first_run_with_them() -> None:
    data = data_of(history_page("nightly", nights(310, ("faithfulness",)), [], no_report))
    system = {place: [text for what, text in found if what == "system"] for place, found in data["changes"].items()}
    assert system == {"100": ["system: 0  -> 1 "], "200": ["system: 1  -> 2 "], "300": ["system: 2  -> 3 "]}
    assert data["ended"].count(0) == 3
    assert data["metrics"][0]["mean"][99] is None
    assert data["versions"]["judge"] == {"values": ["judge 0", "judge 1"], "at": [0] * 300 + [1] * 10}


def test_a_thousand_runs_take_less_than_two_megabytes() -> None:
    link = link_pages("https://reports.example/{name}")
    page = history_page("nightly", nights(1000, slices=12), [open_incident()], link)
    assert len(page.encode()) < 2_000_000
    slices = data_of(page)["slices"]
    assert len(slices) == 12 * len(METRICS)
    assert sum(len(each["mean"]) for each in slices) <= MOST_SLICE_VALUES
    assert slices[0]["first"] == 1000 - len(slices[0]["mean"])


def test_texts_are_inert() -> None:
    page = history_page(ATTACK, nights(12, (ATTACK,), ATTACK, 2), [open_incident(ATTACK)], no_report)
    assert "<script>window.broken" not in page
    assert "<img src" not in page
    assert data_of(page)["metrics"][0]["key"] == ATTACK


def test_reports_of_runs_that_finished_are_linked() -> None:
    link = link_pages("https://reports.example/{folder}/")
    first, *_, died = nights(100)
    assert link(first, "report.html") == "https://reports.example//runs/2026-0000-answers%20/report.html"
    assert link(died, "report.html") is None
    assert link(first, "comparison.html") is None


def test_a_history_without_runs_has_no_page() -> None:
    with pytest.raises(ConfigError, match="no run of 'nightly'"):
        history_page("nightly", [], [], no_report)
