"""Nights read from run folders: paired with the baseline by row, in parts of each metric's range."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metric_core.errors import ConfigError
from metric_core.records import Score
from metric_core.stages import Stage
from metric_core.statistics.alarms import update_alarms
from metric_core.statistics.run_panel import Stream
from metric_core.statistics.slices import Slice
from tasks.comparison.run_pair import Matching
from tasks.history.alarm_entries import alarm_sentence, read_alarm_state, write_alarm_state
from tasks.history.monitored_scores import read_monitored_runs
from tasks.runs.finished_run import FinishedRun
from tests.tasks.reports import folders

METRICS: Mapping[str, Mapping[str, Any]] = {
    "faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]},
    "noise_sensitivity": {"direction": "lower", "bounds": [0.0, 1.0]},
    "stars": {"direction": "higher", "bounds": [1.0, 5.0]},
    "instance_rubrics": {"direction": "higher", "bounds": None},
    "house_style": {"direction": "neither", "bounds": None},
    "latency": {"direction": "lower", "bounds": None},
    "tokens": {"direction": "lower", "bounds": [0.0, None]},
    "aspect": {"direction": "higher", "bounds": [0.0, 1.0]},
}

Cells = dict[str, Score]


def _cells(**more: Score) -> Cells:
    return {
        "faithfulness": Score.scored(1.0),
        "noise_sensitivity": Score.scored(0.0),
        "stars": Score.scored(5.0),
        "instance_rubrics": Score.scored(4.0, "1/2/3/4/5"),
        "house_style": Score.labelled("formal"),
        "latency": Score.scored(0.3),
        "tokens": Score.scored(3.0),
        "aspect": Score.undefined("needs a language-model judge"),
    } | more


def _write(
    folder: Path, day: int, rows: Mapping[str, Cells], *, names: bool = True, extras: bool = True
) -> FinishedRun:
    samples = [
        {
            "row_id": row_id if names else f"{day}-{row_id}",
            "row_number": number + 1,
            "user_input": f"Question {row_id}?",
            "response": "Yes.",
            "extras": f'{{"language": "{"de" if number % 2 else "en"}", "document": "{number // 4}"}}'
            if extras
            else "{}",
        }
        for number, row_id in enumerate(rows)
    ]
    named = {str(sample["row_id"]): cells for sample, cells in zip(samples, rows.values(), strict=True)}
    manifest = {"status": "completed", "created": f"2025-11-{day:02}T03:00:00+00:00", "run_id": f"run-{day}"}
    return FinishedRun(folders.write_run(folder / f"night-{day}", named, {Stage.SAMPLES: samples}, METRICS, manifest))


def _rows(count: int, **more: Score) -> dict[str, Cells]:
    return {f"{i:03}": _cells(**more) for i in range(count)}


def test_scores_are_paired_by_row_in_parts_of_the_range(tmp_path: Path) -> None:
    baseline = _write(tmp_path, 1, _rows(12))
    worse = _rows(12)
    worse["003"] = _cells(
        faithfulness=Score.scored(0.5),
        noise_sensitivity=Score.scored(0.25),
        stars=Score.scored(3.0),
        instance_rubrics=Score.scored(2.0, "1/2/3/4/5"),
    )
    worse["004"] = _cells(faithfulness=Score.failed("no usable reply"), instance_rubrics=Score.scored(2.0, "1/2"))
    del worse["005"]
    worse["099"] = _cells()
    panel = read_monitored_runs(baseline, [_write(tmp_path, 2, worse)], Matching())
    assert panel.metrics == ("faithfulness", "noise_sensitivity", "stars", "instance_rubrics", "tokens")
    assert panel.ranges == {"faithfulness": 1, "noise_sensitivity": 1, "stars": 4, "instance_rubrics": 4, "tokens": 1}
    assert panel.runs == (datetime(2025, 11, 2, 3, tzinfo=UTC),)
    assert panel.improvements.shape == (1, 12, 5), "rows that the baseline lacks are not watched"
    assert panel.improvements[0, 3].tolist() == [-0.5, -0.25, -0.5, -0.5, 0.0]
    assert np.isnan(panel.improvements[0, 4]).tolist() == [True, False, False, True, False], (
        "unscored, and on another scale"
    )
    assert np.isnan(panel.improvements[0, 5]).all()
    assert panel.lower_is_better == {"noise_sensitivity", "tokens"}
    assert panel.favorable is not None
    assert np.isnan(panel.favorable).all(), "one missing score is chance"
    assert set(panel.untested) == {"house_style", "latency", "aspect"}
    assert "no bounds" in panel.untested["latency"]


def test_a_drop_of_some_nights_is_told_by_metric_and_slice(tmp_path: Path) -> None:
    baseline = _write(tmp_path, 1, _rows(240))
    runs = [_write(tmp_path, 2, _rows(240))]
    for day in (3, 4):
        rows = {
            row: _cells(stars=Score.scored(1.0)) if i % 2 and i < 90 else _cells() for i, row in enumerate(_rows(240))
        }
        runs.append(_write(tmp_path, day, rows))
    alarms = update_alarms(read_monitored_runs(baseline, runs, Matching(slices=("language",))), 100)
    assert [alarm.stream for alarm in alarms] == [Stream("stars"), Stream("stars", Slice("language", "de"))]
    assert {alarm.since.day for alarm in alarms} == {3}
    assert alarms[0].drop == pytest.approx(4 * 45 / 240)
    assert alarms[1].drop == pytest.approx(4 * 45 / 120)


def test_a_figure_without_a_greatest_value_is_compared_by_the_ratio_of_each_row(tmp_path: Path) -> None:
    """Seconds of very different questions double; some rows of the second night lack their seconds."""
    usual = {row: 10.0 ** (number % 5 - 2) for number, row in enumerate(_rows(100))}

    def nightly(day: int, factor: float, missing: int = 0) -> FinishedRun:
        noise = np.random.default_rng(day).normal(0, 0.2, 100)
        rows = {
            row: _cells(
                tokens=Score.undefined("no tokens")
                if number < missing
                else Score.scored(seconds * factor * float(np.exp(noise[number])))
            )
            for number, (row, seconds) in enumerate(usual.items())
        }
        return _write(tmp_path, day, rows)

    baseline = nightly(1, 1.0)
    panel = read_monitored_runs(baseline, [nightly(2, 2.0)], Matching())
    assert panel.ratios == {"tokens"} <= panel.lower_is_better
    place = panel.metrics.index("tokens")
    assert float(np.mean(panel.improvements[0, :, place])) == pytest.approx(-np.log10(2), abs=0.05)
    [alarm] = update_alarms(panel, 2)
    assert alarm.is_ratio
    assert 1.0 < 10**alarm.interval.low < 2.0 < 10**alarm.interval.high
    assert "up by a factor of 1." in alarm_sentence(alarm)
    assert read_alarm_state(write_alarm_state([alarm]))[0].is_ratio
    assert update_alarms(read_monitored_runs(baseline, [nightly(3, 1.0)], Matching()), 2) == []
    lacking = read_monitored_runs(baseline, [nightly(4, 2.0, missing=20)], Matching())
    assert lacking.favorable is not None
    assert set(lacking.favorable[0, :20, place]) == {1.0}


def test_rows_are_matched_and_grouped_by_columns(tmp_path: Path) -> None:
    baseline = _write(tmp_path, 1, _rows(12), names=False)
    night = _write(tmp_path, 2, _rows(12, faithfulness=Score.scored(0.0)), names=False)
    with pytest.raises(ConfigError, match="no row in common"):
        read_monitored_runs(baseline, [night], Matching())
    panel = read_monitored_runs(baseline, [night], Matching("user_input", "document"))
    assert panel.groups is not None
    assert panel.groups.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert panel.improvements[0, :, 0].tolist() == [-1.0] * 12


def test_the_baseline_may_lack_the_columns_of_groups_and_slices(tmp_path: Path) -> None:
    baseline, night = _write(tmp_path, 1, _rows(12), extras=False), _write(tmp_path, 2, _rows(12))
    panel = read_monitored_runs(baseline, [night], Matching(by="document", slices=("language",)))
    assert panel.groups is not None
    assert panel.groups.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert [(str(part.slice), int(part.members.sum())) for part in panel.slices] == [
        ("language de", 6),
        ("language en", 6),
    ]
    with pytest.raises(ConfigError, match="cannot be grouped by topic"):
        read_monitored_runs(baseline, [night], Matching(by="topic"))
    with pytest.raises(ConfigError, match="no run to test"):
        read_monitored_runs(baseline, [], Matching())


def test_large_groups_are_slices_unless_rows_are_sliced_by_the_column(tmp_path: Path) -> None:
    baseline, night = _write(tmp_path, 1, _rows(22)), _write(tmp_path, 2, _rows(22))
    panel = read_monitored_runs(baseline, [night], Matching(by="language"))
    sizes = {str(part.slice): int(part.members.sum()) for part in panel.slices}
    assert sizes == {"language de": 11, "language en": 11}
    assert read_monitored_runs(baseline, [night], Matching(by="document")).slices == (), "four rows are too few"
    both = read_monitored_runs(baseline, [night], Matching(by="language", slices=("language",)))
    assert [str(part.slice) for part in both.slices] == ["language de", "language en"]


def test_an_earlier_night_with_other_rows_is_left_out(tmp_path: Path) -> None:
    baseline = _write(tmp_path, 1, _rows(12))
    other = _write(tmp_path, 2, _rows(12), names=False)
    panel = read_monitored_runs(baseline, [other, _write(tmp_path, 3, _rows(12))], Matching())
    assert [night.day for night in panel.runs] == [3]


@pytest.mark.parametrize("lost", ["others", "the same"])
def test_equally_many_missing_scores_count_favorably_if_they_are_those_of_other_rows(tmp_path: Path, lost: str) -> None:
    """The baseline lacks low scores, and the night high ones: without them the night looks worse."""
    rows = _rows(40) | {f"{i:03}": _cells(faithfulness=Score.scored(0.2)) for i in range(20, 40)}
    before, after = dict(rows), dict(rows)
    for number in range(10):
        for cells, row in ((before, 20 + number), (after, number if lost == "others" else 30 + number)):
            cells[f"{row:03}"] = _cells(faithfulness=Score.failed("no usable reply"))
    panel = read_monitored_runs(_write(tmp_path, 1, before), [_write(tmp_path, 2, after)], Matching())
    assert panel.favorable is not None
    possible = panel.favorable[0, :, 0]
    assert np.isnan(panel.improvements[0, :, 0]).sum() == 20
    assert (~np.isnan(possible)).sum() == (20 if lost == "others" else 0)
    if lost == "others":
        assert (possible[:10].tolist(), possible[20:30].tolist()) == ([0.0] * 10, [0.2] * 10)


@pytest.mark.parametrize("lacking", ["baseline", "night"])
def test_scores_that_are_missing_on_one_side_count_as_favorably_as_they_could_be(tmp_path: Path, lacking: str) -> None:
    half = {"faithfulness": Score.scored(0.5), "noise_sensitivity": Score.scored(0.25)}
    full, partial = _rows(12, **half), _rows(12, **half)
    for row in list(partial)[:6]:
        partial[row] = _cells(faithfulness=Score.failed("no usable reply"), noise_sensitivity=Score.undefined("empty"))
    before, after = (partial, full) if lacking == "baseline" else (full, partial)
    panel = read_monitored_runs(_write(tmp_path, 1, before), [_write(tmp_path, 2, after)], Matching())
    assert panel.favorable is not None
    # Faithfulness could have risen from 0 to 0.5, or from 0.5 to 1; noise sensitivity could have fallen to or from 1.
    noise = 0.75 if lacking == "baseline" else 0.25
    assert panel.favorable[0, :6, :2].tolist() == [[0.5, noise]] * 6
    assert np.isnan(panel.favorable[0, 6:]).all()
    assert np.isnan(panel.improvements[0, :6, :2]).all()
