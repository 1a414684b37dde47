"""Alarms over many nights: what raises them, what ends them, and how rarely they are false."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from metric_core.errors import ConfigError
from metric_core.statistics import betting
from metric_core.statistics.alarms import RUNS_READ, Alarm, AlarmSettings, find_step, update_alarms
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_evidence import log_e_values
from metric_core.statistics.run_panel import FIRST_RUNS, Panel, SliceRows, Stream, find_large_groups, number_groups
from metric_core.statistics.slices import Slice

START = datetime(2025, 11, 10, 3, tzinfo=UTC)
METRICS = ("faithfulness", "context_recall")


def _panel(improvements: Floats, **more: object) -> Panel:
    """Return a panel of nights x rows x metrics."""
    nights = tuple(START + timedelta(days=night) for night in range(len(improvements)))
    metrics = METRICS[: improvements.shape[2]]
    return Panel(metrics, dict.fromkeys(metrics, 1.0), nights, improvements, **more)  # type: ignore[arg-type]


def _quiet(nights: int, rows: int = 400, metrics: int = 2, seed: int = 1) -> Floats:
    """Return nights of an unchanged system: 20 % of the answers change every night, in the baseline as well."""
    generator = np.random.default_rng(seed)
    usual = np.where(generator.random((rows, metrics)) < 0.8, 1.0, 0.5)
    scores = np.where(generator.random((nights + 1, rows, metrics)) < 0.2, 1.5 - usual, usual)
    return np.asarray(scores[1:] - scores[0])


def _follow(panel: Panel, first_number: int = 100) -> list[list[Alarm]]:
    """Watch all nights of a panel, one after the other."""
    standing: list[list[Alarm]] = []
    for last in range(1, len(panel.runs) + 1):
        known = panel.select(range(last))
        standing.append(update_alarms(known, first_number + last, previous=standing[-1] if standing else ()))
    return standing


def test_a_drop_is_told_with_its_day_and_size_and_ends_when_it_is_regained() -> None:
    values = _quiet(18)
    values[8:13, :40, 0] = -1.0
    standing = _follow(_panel(values))
    assert not any(standing[:8])
    [alarm] = standing[10]
    assert alarm.stream == Stream("faithfulness")
    assert alarm.since == START + timedelta(days=8)
    assert alarm.interval.low > 0
    assert alarm.interval.low < 0.1 < alarm.interval.high
    assert alarm.drop == pytest.approx(0.1, abs=0.02)
    assert alarm.rows == 400
    told = [night for night, alarms in enumerate(standing) if any(alarm.is_new for alarm in alarms)]
    assert len(told) == 1
    assert told[0] <= 10
    assert all(alarms[0].since == alarm.since and alarms[0].raised == alarm.raised for alarms in standing[told[0] : 14])
    assert [len(alarms) for alarms in standing[13:]] == [1, 0, 0, 0, 0], "one regained night is not enough, two are"


def test_a_second_drop_is_a_second_alarm() -> None:
    values = _quiet(15)
    values[4:8, :60, 0] = values[12:, :60, 0] = -1.0
    standing = _follow(_panel(values))
    new = [(night, alarm.since) for night, alarms in enumerate(standing) for alarm in alarms if alarm.is_new]
    assert [night for night, _ in new] == [4, 12]
    assert new[1][1] == START + timedelta(days=12)


def test_noise_that_all_nights_share_is_no_evidence() -> None:
    """The baseline was lucky by two standard errors; the money of a bet that goes on would be a million."""
    generator = np.random.default_rng(3)
    nights = np.repeat(generator.choice([-1.0, 0.0, 1.0], (1, 400, 1), p=[0.09, 0.86, 0.05]), 30, axis=0)
    money = sum(float(betting.log_e_values(night)[0]) for night in nights)
    assert money > np.log(1e6)
    assert not any(_follow(_panel(nights)))


def test_years_without_drift_have_no_alarm() -> None:
    raised = [seed for seed in range(12) if any(_follow(_panel(_quiet(20, rows=150, seed=seed)), first_number=0))]
    assert not raised


def test_groups_of_rows_are_one_piece_of_evidence() -> None:
    """Ten documents lost something by chance; each has 20 rows."""
    values = np.zeros((3, 400, 1))
    values[:, :100] = -0.5
    assert update_alarms(_panel(values), 100)
    groups = np.repeat(np.arange(20), 20)
    assert not update_alarms(_panel(values, groups=groups), 100)
    many = np.zeros((3, 4000, 1))
    many[:, :2000] = -0.5
    assert update_alarms(_panel(many, groups=np.repeat(np.arange(200), 20)), 100)


@pytest.mark.parametrize("sizes", [range(1, 10), [60, *[1] * 150]])
def test_groups_of_different_sizes_count_alike(sizes: Sequence[int]) -> None:
    """A bet that is scaled to the largest group never tells what the others lost."""
    groups = np.repeat(np.arange(20 * len(sizes)), [*sizes] * 20)
    values = np.zeros((3, len(groups), 1))
    values[:, np.flatnonzero(np.diff(groups, prepend=-1))[::4]] = -0.8
    [alarm] = update_alarms(_panel(values, groups=groups), 100)
    assert alarm.groups == 20 * len(sizes)
    shares = np.bincount(groups, -values[0, :, 0]) / np.bincount(groups)
    assert alarm.drop == pytest.approx(shares.mean())
    assert alarm.interval.low < alarm.drop < alarm.interval.high


def test_a_large_group_alone_is_no_evidence() -> None:
    groups = np.concatenate([np.zeros(60, dtype=int), np.arange(1, 41)])
    values = np.zeros((3, 100, 1))
    values[:, :60] = -1.0
    assert not update_alarms(_panel(values, groups=groups), 100)
    assert update_alarms(_panel(-1.0 - values, groups=groups), 100), "all of the others fell"


def test_the_largest_customer_is_told_by_itself_though_it_is_one_group() -> None:
    """40 % of the rows lose 80 % of their score; as one group of many they raise nothing."""
    customers = {f"{i:03}": "acme" if i < 120 else f"c{i // 3}" for i in range(300)}
    values = _quiet(3, rows=300, metrics=1)
    values[:, :120] -= 0.8
    values = np.clip(values, -1.0, 1.0)
    panel = _panel(values, groups=number_groups([*customers.values()]))
    assert not update_alarms(panel, 100)
    slices = find_large_groups("customer", customers, [*customers])
    [alarm] = update_alarms(replace(panel, slices=tuple(slices)), 100)
    assert (alarm.stream.slice, alarm.rows, alarm.groups) == (Slice("customer", "acme"), 120, 0)
    assert alarm.drop == pytest.approx(0.8, abs=0.1)


def _noisy(drop_from: int, runs: int, drop: float, rows: int = 300) -> Floats:
    """Return runs of which a share of the rows is lost from one on, compared with a noisy accepted run."""
    generator = np.random.default_rng(6)
    scores = np.where(generator.random((runs + 1, rows, 1)) < 0.3, 0.4, 1.0)
    scores[drop_from + 1 :, : round(drop * rows)] *= 0.2
    return np.asarray(scores[1:] - scores[0])


def test_the_first_runs_are_a_second_baseline_with_less_noise() -> None:
    panel = _panel(_noisy(20, 24, 0.12))
    more = panel.with_first_runs(panel.runs[FIRST_RUNS - 2])
    assert (log_e_values(more, [22]) > log_e_values(panel, [22]) + np.log(10)).all()
    assert (log_e_values(more, [FIRST_RUNS - 2]) == log_e_values(panel, [FIRST_RUNS - 2])).all()
    told = _follow(more)
    assert not any(told[:20])
    [alarm] = told[-1]
    assert alarm.since == panel.runs[20]
    assert alarm.interval.low < 0.8 * 0.82 * 0.12 < alarm.interval.high


def test_a_drop_in_the_first_runs_is_told_by_the_accepted_run() -> None:
    panel = _panel(_noisy(1, 20, 0.3))
    panel = panel.with_first_runs(panel.runs[FIRST_RUNS - 2])
    assert _follow(panel)[-1]
    last = [len(panel.runs) - 1]
    assert log_e_values(panel, last) < log_e_values(replace(panel, first_runs=None), last)


def test_scores_that_the_first_runs_lack_may_have_been_the_worst() -> None:
    values = np.zeros((8, 100, 1))
    values[:6, :60] = np.nan
    favorable = np.where(np.isnan(values), 0.4, np.nan)
    first = _panel(values, favorable=favorable).with_first_runs(START + timedelta(days=5)).first_runs
    assert first is not None
    assert first.runs == FIRST_RUNS
    assert first.improvements[:60, 0] == pytest.approx(np.full(60, -0.6 * 6 / 7))
    assert not first.improvements[60:].any()


def test_noise_that_all_rows_of_a_run_share_is_no_drop() -> None:
    """Ten thousand rows cannot tell a drop from a bad night of the judge's server; earlier nights can."""
    values = np.full((3, 10_000, 1), -0.02)
    [alarm] = update_alarms(_panel(values), 100)
    assert alarm.interval.low > 0.01
    assert not update_alarms(_panel(values, shared_noise={"faithfulness": 0.01}), 100)
    [alarm] = update_alarms(_panel(5 * values, shared_noise={"faithfulness": 0.01}), 100)
    assert 0 < alarm.interval.low < 0.1 - 4 * 0.01
    assert alarm.interval.high > 0.1 + 4 * 0.01


def test_the_last_step_has_the_error_of_its_rows() -> None:
    values = np.zeros((2, 40, 1))
    values[1, :10] = -1.0
    values[1, 39] = np.nan
    [(change, error)] = _panel(values).last_step().values()
    assert (change, error) == pytest.approx((-10 / 39, np.std(values[1, :39], ddof=1) / np.sqrt(39)))
    assert _panel(values, groups=np.arange(40) // 10).last_step() == {}, "four groups are too few"
    assert _panel(values[:1]).last_step() == {}


def test_a_slice_is_told_by_itself() -> None:
    values = _quiet(8, rows=600)
    members = np.arange(600) < 150
    values[4:, :60, 1] = -1.0
    slices = (SliceRows(Slice("language", "de"), members), SliceRows(Slice("language", "en"), ~members))
    found = {alarm.stream for alarm in update_alarms(_panel(values, slices=slices), 100)}
    assert found == {Stream("context_recall"), Stream("context_recall", Slice("language", "de"))}
    values[4:, 40:60, 1] = 0.0
    values[4:, 300:, 1] += np.where(np.arange(300) < 25, 1.0, 0.0) * (values[4:, 300:, 1] <= 0)
    [alarm] = update_alarms(_panel(values, slices=slices), 100)
    assert alarm.stream.slice == Slice("language", "de"), "what others gained does not hide what a slice lost"


def test_rows_come_and_go_and_cells_are_unscored() -> None:
    values = _quiet(10)
    values[3:, :30] = np.nan
    values[np.random.default_rng(1).random(values.shape) < 0.1] = np.nan
    values[:, :, 1] = np.nan
    assert not any(_follow(_panel(values)))
    values[6:, 40:90, 0] = -1.0
    [alarm] = _follow(_panel(values))[9]
    assert 280 < alarm.rows < 370


def test_missing_scores_count_as_favorable_as_they_could_be() -> None:
    """Eighty rows that lost nothing could have gained, if they had been scored in the baseline."""
    values = np.zeros((3, 400, 1))
    values[:, :40] = -1.0
    values[:, 320:] = np.nan
    assert update_alarms(_panel(values), 100)
    favorable = np.full(values.shape, np.nan)
    favorable[:, 320:] = 1.0
    assert not update_alarms(_panel(values, favorable=favorable), 100)


def test_metrics_have_their_range_and_direction() -> None:
    values = _quiet(4, metrics=1)
    values[1:, :80] = -0.5
    panel = replace(_panel(values), ranges={"faithfulness": 4.0}, lower_is_better=frozenset({"faithfulness"}))
    [alarm] = update_alarms(panel, 100)
    assert alarm.lower_is_better
    assert alarm.drop == pytest.approx(0.4, abs=0.1)
    assert alarm.interval.high > alarm.drop > alarm.interval.low > 0


def test_the_weights_of_a_year_are_at_most_1_however_many_runs_it_has() -> None:
    for nights in [1, 52, 366, 2190]:
        for runs in [1, 100, 366, 5000]:
            assert AlarmSettings(runs=nights).weights(range(-3, runs + 1)).sum() <= 1, (runs, nights)


def test_nights_of_the_year_before_do_not_count_again() -> None:
    values = np.zeros((4, 400, 1))
    values[:, :13] = -1.0
    assert update_alarms(_panel(values), 300)
    assert not update_alarms(_panel(values), 1)


def test_only_the_last_nights_are_read() -> None:
    values = _quiet(40)
    values[30:, :40, 0] = -1.0
    whole = _panel(values)
    assert update_alarms(whole, 100) == update_alarms(whole.recent(RUNS_READ), 100) != []


@pytest.mark.parametrize(
    ("means", "step"),
    [
        ([0.0, 0.0, -0.1, -0.1], 2),
        ([-0.1, -0.1], 0),
        ([0.02, float("nan"), -0.1, float("nan"), -0.12], 2),
        ([float("nan"), float("nan")], 1),
        ([-0.1, 0.0, 0.0, 0.0, -0.1], 4),
    ],
)
def test_the_step_is_where_the_means_fall(means: Sequence[float], step: int) -> None:
    assert find_step(np.array(means)) == step


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(ConfigError, match="no run to test"):
        update_alarms(_panel(np.zeros((0, 4, 1))), 1)
    with pytest.raises(ConfigError, match="numbered from 1, got 0"):
        update_alarms(_panel(np.zeros((1, 4, 1))), 0)
    with pytest.raises(ConfigError, match=r"got 1\.5"):
        AlarmSettings(error=1.5)
    with pytest.raises(ConfigError, match="at least 1 run"):
        AlarmSettings(runs=0)
    assert update_alarms(_panel(np.zeros((2, 4, 0))), 1) == []
