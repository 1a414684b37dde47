"""Metrics that have an alarm and become worse again."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from metric_core.statistics.alarms import Alarm, update_alarms
from metric_core.statistics.further_drops import keep_sizes, update_further_alarms
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Panel, SliceRows, Stream
from metric_core.statistics.slices import Slice

START = datetime(2025, 11, 10, 3, tzinfo=UTC)
ROWS = 300


def _panel(improvements: Floats, **more: object) -> Panel:
    nights = tuple(START + timedelta(days=night) for night in range(len(improvements)))
    return Panel(("faithfulness",), {"faithfulness": 1.0}, nights, improvements[..., None], **more)  # type: ignore[arg-type]


def _nights(drops: Sequence[float], rows: int = ROWS, seed: int = 1) -> Floats:
    """Return nights of a system that loses rows; 20 % of its answers change every night, as in the baseline."""
    generator = np.random.default_rng(seed)
    usual = np.where(generator.random(rows) < 0.8, 1.0, 0.5)
    scores = np.where(generator.random((len(drops) + 1, rows)) < 0.2, 1.5 - usual, usual)
    order = generator.permutation(rows)
    for night, drop in enumerate(drops, start=1):
        scores[night, order[: round(rows * drop / 0.87)]] = 0.0
    return np.asarray(scores[1:] - scores[0])


def _follow(panel: Panel) -> list[list[Alarm]]:
    """Watch all nights of a panel, one after the other."""
    standing: list[list[Alarm]] = [[]]
    for last in range(1, len(panel.runs) + 1):
        known = panel.select(range(last))
        alarms = update_alarms(known, 100 + last, previous=standing[-1])
        further = [alarm for alarm in standing[-1] if alarm.further]
        found = update_further_alarms(known, known, 100 + last, known=[*alarms, *further])
        standing.append([*keep_sizes(alarms, found, standing[-1]), *found])
    return standing[1:]


def _told(nights: Sequence[Sequence[Alarm]]) -> list[tuple[int, int]]:
    return [(night, alarm.further) for night, alarms in enumerate(nights) for alarm in alarms if alarm.is_new]


def test_a_further_drop_is_told_with_its_day_and_size() -> None:
    nights = _follow(_panel(_nights([0.0] * 3 + [0.1] * 20 + [0.2] * 6)))
    [(_, none), (night, one)] = _told(nights)
    assert (none, one) == (0, 1)
    assert 23 <= night <= 26
    first, second = nights[night]
    assert (first.further, first.is_new, second.since) == (0, False, START + timedelta(days=23))
    assert 0 < second.interval.low < 0.1 < second.interval.high
    assert second.drop == pytest.approx(0.1, abs=0.03)
    assert second.base == pytest.approx(0.1, abs=0.04)
    assert [alarm.further for alarm in nights[-1]] == [0, 1]


@pytest.mark.simulation
def test_a_drop_that_stays_is_told_once() -> None:
    """Without anything further, nothing further is told, however long the first alarm stands."""
    seeds = [seed for seed in range(3) if len(_told(_follow(_panel(_nights([0.0, *[0.12] * 40], seed=seed))))) != 1]
    assert seeds == []


def test_each_further_drop_is_told_once_and_ends_by_itself() -> None:
    drops = [0.0, *[0.15] * 5, *[0.3] * 5, *[0.45] * 5, *[0.3] * 3, *[0.15] * 3, *[0.0] * 3]
    nights = _follow(_panel(_nights(drops)))
    assert [further for _, further in _told(nights)] == [0, 1, 2]
    assert [alarm.further for alarm in nights[15]] == [0, 1, 2]
    assert nights[15][0].drop == nights[5][0].drop == pytest.approx(0.15, abs=0.03)
    assert [alarm.further for alarm in nights[18]] == [0, 1]
    assert [alarm.further for alarm in nights[21]] == [0]
    assert nights[24] == []
    assert [alarm.is_regained for alarm in nights[16]] == [False, False, True]


def test_a_drop_after_a_regained_one_is_told_again() -> None:
    drops = [0.0, *[0.15] * 4, *[0.3] * 4, *[0.15] * 3, *[0.3] * 4]
    assert [further for _, further in _told(_follow(_panel(_nights(drops))))] == [0, 1, 1]


def test_night_that_raised_an_alarm_may_be_gone() -> None:
    panel = _panel(_nights([0.0, *[0.1] * 4, *[0.3] * 3]))
    [first] = update_alarms(panel.recent(8), 107, previous=_follow(_panel(_nights([0.0, *[0.1] * 4])))[-1])
    assert update_further_alarms(panel, panel.recent(0), 108, known=[first]) == []
    [further] = update_further_alarms(panel, panel.recent(5), 108, known=[first])
    assert (further.further, further.is_new) == (1, True)


def test_a_slice_has_further_drops_of_its_own() -> None:
    values = _nights([0.0, *[0.0] * 9], rows=600)
    members = np.arange(600) < 200
    values[2:, :60] = values[6:, 60:160] = -0.9
    slices = (SliceRows(Slice("language", "de"), members), SliceRows(Slice("language", "en"), ~members))
    told = {alarm.stream for alarm in _follow(_panel(values, slices=slices))[-1] if alarm.further}
    assert told == {Stream("faithfulness"), Stream("faithfulness", Slice("language", "de"))}


def test_scores_that_are_missing_are_no_further_drop() -> None:
    """Low scores were not scored on the night of the alarm, and are there again."""
    values = np.zeros((6, ROWS))
    values[1:, :60] = -1.0
    values[2:, 60:100] = -1.0
    values[1, 60:100] = np.nan
    favorable = np.full((6, ROWS, 1), np.nan)
    favorable[1, 60:100] = 0.0
    assert [further for _, further in _told(_follow(_panel(values)))] == [0]
    lost = values.copy()
    lost[1, 60:100] = 0.0
    assert [further for _, further in _told(_follow(_panel(lost)))] == [0, 1]
    improved = np.where(np.isnan(values), np.nan, values)
    assert [further for _, further in _told(_follow(_panel(improved, favorable=favorable)))] == [0]
