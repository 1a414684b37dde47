"""The alarms of one run after the other, from their folders, their history and their outcomes alone."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from metric_core.records import Score
from metric_core.stages import Stage
from metric_core.statistics.alarms import RUNS_READ, Alarm
from metric_core.statistics.run_panel import FIRST_RUNS
from metric_core.statistics.shared_noise import ASSUMED_NOISE
from tasks.comparison.run_pair import Matching
from tasks.history.alarm_entries import outcome_alarm, write_alarm_state
from tasks.history.alarm_explanation import explain_alarms
from tasks.history.open_alarms import OpenAlarms, find_baseline_folders, find_open_alarms, read_alarm_runs
from tasks.history.recorded_run import RecordedRun
from tasks.record.outcome import OutcomeAlarm, OutcomeBaseline, RunOutcome
from tasks.runs.finished_run import FinishedRun
from tests.tasks.reports import folders

METRICS = {"faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]}}
ROWS = 120


def _write(folder: Path, day: int, lost: int) -> FinishedRun:
    """Write a run of which some rows score 0 instead of 1."""
    names = [f"row-{i:03}" for i in range(ROWS)]
    scores = {name: {"faithfulness": Score.scored(float(i >= lost))} for i, name in enumerate(names)}
    samples = [{"row_id": name, "row_number": i + 1, "user_input": name} for i, name in enumerate(names)]
    manifest = {"status": "completed", "created": f"2025-11-{day:02}T03:00:00+00:00", "run_id": f"run-{day}"}
    return FinishedRun(folders.write_run(folder / f"{day}", scores, {Stage.SAMPLES: samples}, METRICS, manifest))


def _record(run: FinishedRun, baseline: FinishedRun | None, alarms: Sequence[Alarm] = ()) -> RecordedRun:
    named = None
    if baseline is not None:
        named = OutcomeBaseline(run_id=baseline.run_id, folder=str(baseline.folder), version="1")
    outcome = RunOutcome(
        name="support",
        trigger="schedule",
        baseline=named,
        alarms=tuple(map(outcome_alarm, alarms)),
        alarm_state=write_alarm_state(alarms),
    )
    outcome = RunOutcome.model_validate(json.loads(outcome.model_dump_json()))
    created = datetime.fromisoformat(run.record.created)
    return RecordedRun(run.run_id, "support", created, str(run.folder), "completed", outcome=outcome)


def follow(folder: Path, lost: Sequence[int]) -> tuple[list[RecordedRun], list[OpenAlarms]]:
    """Write and watch a run per number of lost rows, on the days after the baseline's."""
    baseline = _write(folder, 1, 0)
    history, found = [_record(baseline, None)], []
    for day, count in enumerate(lost, start=2):
        run = _write(folder, day, count)
        found.append(find_open_alarms(history, baseline, run, Matching()))
        history.append(_record(run, baseline, found[-1].alarms))
    return history, found


def test_a_drop_stands_from_its_first_night_until_it_is_regained(tmp_path: Path) -> None:
    _, found = follow(tmp_path, [0, 0, 24, 24, 24, 0, 0, 0])
    assert [len(each.alarms) for each in found] == [0, 0, 1, 1, 1, 1, 0, 0]
    assert [each.alarms[0].is_new for each in found if each.alarms] == [True, False, False, False]
    assert {each.alarms[0].since for each in found if each.alarms} == {datetime(2025, 11, 4, 3, tzinfo=UTC)}
    assert [each.runs for each in found] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_first_runs_are_a_baseline_too_unless_one_has_an_alarm(tmp_path: Path) -> None:
    history, found = follow(tmp_path / "quiet", [1] * (FIRST_RUNS + 1))
    assert not any(each.alarms for each in found)
    baseline = FinishedRun(history[0].folder)
    last = FinishedRun(history[-1].folder)
    first = read_alarm_runs(history, baseline, last, Matching()).panel.first_runs
    assert first is not None
    assert (first.runs, first.last) == (FIRST_RUNS, history[FIRST_RUNS - 1].created)
    assert first.improvements.sum() == pytest.approx(-(FIRST_RUNS - 1) / FIRST_RUNS)
    assert find_baseline_folders(history, {baseline.folder}) == {Path(run.folder) for run in history[:FIRST_RUNS]}
    assert find_baseline_folders(history, {tmp_path}) == {tmp_path}
    assert history[2].outcome is not None
    alarm = OutcomeAlarm(metric="faithfulness", sentence="")
    alarmed = replace(history[2], outcome=history[2].outcome.model_copy(update={"alarms": (alarm,)}))
    assert read_alarm_runs([*history[:2], alarmed, *history[3:]], baseline, last, Matching()).panel.first_runs is None
    assert read_alarm_runs(history[:FIRST_RUNS], baseline, last, Matching()).panel.first_runs is not None
    assert read_alarm_runs(history[: FIRST_RUNS - 1], baseline, last, Matching()).panel.first_runs is None


def test_first_runs_that_are_no_longer_among_the_last_are_read_as_well(tmp_path: Path) -> None:
    history, _ = follow(tmp_path, [0, 1, 2, 3, 4, 5, *[0] * (RUNS_READ - 2)])
    read = read_alarm_runs(history, FinishedRun(history[0].folder), FinishedRun(history[-1].folder), Matching())
    assert len(read.panel.runs) == RUNS_READ
    assert read.panel.runs[0] > history[4].created
    assert read.panel.first_runs is not None
    assert read.panel.first_runs.improvements.sum() == pytest.approx(-15 / 7)


def test_the_noise_that_all_rows_share_comes_from_the_outcomes_of_earlier_runs(tmp_path: Path) -> None:
    baseline, tonight = _write(tmp_path, 1, 0), _write(tmp_path, 3, 16)
    [first] = [find_open_alarms([], baseline, _write(tmp_path, 2, 4), Matching())]
    assert first.steps == {}
    history = [_record(FinishedRun(tmp_path / "2"), baseline)]
    found = find_open_alarms(history, baseline, tonight, Matching())
    assert found.steps["faithfulness"] == pytest.approx((-12 / ROWS, 0.3 / ROWS**0.5), rel=0.01)
    assert found.shared_noise == {"faithfulness": ASSUMED_NOISE}
    assert history[0].outcome is not None
    for step, error, is_told in ((0.0, 0.001, True), (0.2, 0.01, False)):
        known = history[0].outcome.model_copy(update={"steps": {"faithfulness": (step, error)}, "baseline": None})
        found = find_open_alarms([replace(history[0], outcome=known)] * 10, baseline, tonight, Matching())
        assert (found.shared_noise["faithfulness"] < 0.1, bool(found.alarms)) == (is_told, is_told)
    worse = known.model_copy(update={"alarms": (OutcomeAlarm(metric="faithfulness", sentence=""),)})
    found = find_open_alarms([replace(history[0], outcome=worse)] * 10, baseline, tonight, Matching())
    assert found.shared_noise == {"faithfulness": ASSUMED_NOISE}, "a drop is no noise"


def test_alarms_stand_after_a_night_that_could_not_be_compared(tmp_path: Path) -> None:
    history, _ = follow(tmp_path, [0, 24, 24])
    assert history[-1].outcome is not None
    lost = history[-1].outcome.model_copy(update={"alarms": (), "alarm_state": {}})
    found = find_open_alarms(
        [*history[:-1], replace(history[-1], outcome=lost)],
        FinishedRun(history[0].folder),
        _write(tmp_path / "again", 5, 24),
        Matching(),
    )
    assert [(alarm.since, alarm.is_new) for alarm in found.alarms] == [(datetime(2025, 11, 3, 3, tzinfo=UTC), False)]


def test_runs_with_another_baseline_or_without_an_outcome_are_no_nights(tmp_path: Path) -> None:
    history, _ = follow(tmp_path, [24, 24])
    new, tonight = _write(tmp_path, 5, 24), _write(tmp_path, 6, 24)
    found = find_open_alarms([*history, _record(new, None)], new, tonight, Matching())
    assert found == OpenAlarms((), 1, shared_noise={"faithfulness": ASSUMED_NOISE})
    by_hand = [replace(each, outcome=None) for each in history]
    assert find_open_alarms(by_hand, FinishedRun(history[0].folder), tonight, Matching()).runs == 1


def test_runs_that_are_gone_or_replaced_are_left_out_and_named(tmp_path: Path) -> None:
    history, _ = follow(tmp_path, [0, 0, 0])
    shutil.rmtree(history[1].folder)
    history[2] = replace(history[2], run_id="earlier")
    history[3].outcome.alarm_state["alarms"] = [{}]  # type: ignore[union-attr]
    found = find_open_alarms(history, FinishedRun(history[0].folder), _write(tmp_path, 6, 0), Matching())
    assert found.runs == 2
    gone, replaced, damaged = found.left_out
    assert "2025-11-02" in gone
    assert "contains another run" in replaced
    assert "Field required" in damaged


@pytest.mark.parametrize(("runs", "is_told"), [(3, True), (5000, False)])
def test_all_monitored_runs_of_the_year_share_its_error(tmp_path: Path, runs: int, *, is_told: bool) -> None:
    """Sixteen of 120 rows are enough among the first nights of the year, and too few after thousands of runs."""
    baseline = _write(tmp_path, 1, 0)
    entry = _record(baseline, None)
    assert entry.outcome is not None
    steady = entry.outcome.model_copy(update={"steps": {"faithfulness": (0.0, 0.0)}})
    history = [replace(entry, run_id=f"other-{i}", outcome=steady) for i in range(runs)]
    assert bool(find_open_alarms(history, baseline, _write(tmp_path, 2, 16), Matching()).alarms) is is_told


def test_the_evidence_explains_from_which_run_on_an_alarm_stands(tmp_path: Path) -> None:
    history, found = follow(tmp_path, [0, 0, 24, 24])
    shutil.rmtree(history[2].folder)
    explained = explain_alarms(history, FinishedRun(history[0].folder), FinishedRun(history[-1].folder), Matching())
    [(stream, nights)] = explained.streams.items()
    assert (stream.metric, explained.threshold, explained.number) == ("faithfulness", 20, 5)
    assert [night.started.day for night in nights] == [2, 4, 5]
    assert [night.rows for night in nights] == [ROWS] * 3
    assert [night.change for night in nights] == pytest.approx([0, -0.2, -0.2])
    assert [night.evidence >= explained.threshold for night in nights] == [False, True, True]
    assert [bool(each.alarms) for each in found] == [False, False, True, True]
    first, gone = explained.left_out
    assert first == "1 monitored run with another baseline or without one"
    assert gone.startswith("alarms do without the run of 2025-11-03 03:00")
