"""Runs are ranked over the same rows; whichever is truly best stays among those that may be the best."""

import numpy as np
import pytest

from benchmarks import best_of_many as worlds
from metric_core.statistics import best_of_many
from metric_core.statistics.best_of_many import RunValues, rank_runs
from metric_core.statistics.bounded_means import BoundedMean, Bounds
from metric_core.statistics.paired_tests import paired_test
from metric_core.statistics.pairs import Pairs
from metric_core.statistics.resampling import Floats, Units

SCORE = Bounds(0.0, 1.0)
RUNS = 120
LEAD = np.array([1.0, 0.0, 0.0, 0.0])


def values(seed: int = 1, rows: int = 60, runs: int = 4) -> Floats:
    generator = np.random.default_rng(seed)
    return np.clip(generator.normal(0.6, 0.2, (rows, 1)) + generator.normal(0, 0.1, (rows, runs)), 0, 1)


def test_equal_runs_are_not_told_apart_and_a_better_one_is() -> None:
    equal = values()
    assert all(run.may_be_best for run in rank_runs(RunValues(values=equal, bounds=SCORE)).runs)
    better = np.clip(equal + LEAD * 0.2, 0, 1)
    ranking = rank_runs(RunValues(values=better, bounds=SCORE))
    assert [run.may_be_best for run in ranking.runs] == [True, False, False, False]
    assert (ranking.leader, ranking.runs[0].behind, ranking.runs[0].at_most) == (0, 0.0, 0.0)
    assert [run.beaten_by for run in ranking.runs] == [None, 0, 0, 0]
    assert all(run.at_most > run.behind > 0 for run in ranking.runs[1:] if run.at_most)


def test_lower_can_be_better() -> None:
    better = np.clip(values() - LEAD * 0.2, 0, 1)
    ranking = rank_runs(RunValues(values=better, bounds=SCORE, lower_is_better=True))
    assert [run.may_be_best for run in ranking.runs] == [True, False, False, False]
    assert ranking.runs[0].mean == pytest.approx(better[:, 0].mean())


def test_two_runs_have_the_one_sided_p_of_a_comparison() -> None:
    pair = np.clip(values(runs=2) + LEAD[:2] * 0.03, 0, 1)
    ranking = rank_runs(RunValues(values=pair, bounds=SCORE))
    test = paired_test(Pairs(None, tuple(map(str, range(60))), pair[:, 1], pair[:, 0], None, SCORE), seed=1)
    assert ranking.runs[1].p == pytest.approx(test.p / 2, abs=0.01)
    assert ranking.runs[1].at_most == pytest.approx(
        BoundedMean(Units.from_values(pair[:, 0] - pair[:, 1]), Bounds(-1, 1), 1).interval(0.9).high, abs=0.003
    )


def test_many_rows_have_the_limits_of_few() -> None:
    found = values(rows=400)
    few = rank_runs(RunValues(values=found, bounds=SCORE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_of_many, "_MOST_CELLS", 1000)
        patch.setattr(best_of_many, "_MOST_UNITS", 100)
        many = rank_runs(RunValues(values=found, bounds=SCORE))
    for one, other in zip(few.runs, many.runs, strict=True):
        assert one.at_most == pytest.approx(other.at_most, abs=0.002)
        assert one.p == pytest.approx(other.p, abs=0.02)


def test_copies_of_a_run_cost_no_evidence() -> None:
    first, second = np.clip(values(runs=2) + LEAD[:2] * 0.06, 0, 1).T
    pair = rank_runs(RunValues(values=np.column_stack([first, second]), bounds=SCORE))
    copies = rank_runs(RunValues(values=np.column_stack([second, *[first] * 9]), bounds=SCORE))
    assert copies.runs[0].p == pytest.approx(pair.runs[1].p)


def test_few_rows_or_groups_decide_nothing() -> None:
    found = np.tile([1.0, 0.0], (40, 1))
    for ranking in (
        rank_runs(RunValues(values=found[:4], bounds=SCORE)),
        rank_runs(RunValues(values=found, bounds=None)),
        rank_runs(RunValues(values=found, bounds=SCORE, groups=["a", "b"] * 20)),
    ):
        assert not ranking.is_decided
        assert [(run.may_be_best, run.at_most) for run in ranking.runs] == [(True, None)] * 2


def test_rows_of_a_group_count_together() -> None:
    found = np.clip(values(rows=12) + LEAD * 0.1, 0, 1)
    repeated = np.repeat(found, 5, axis=0)
    groups = [str(row // 5) for row in range(60)]
    assert sum(run.may_be_best for run in rank_runs(RunValues(values=repeated, bounds=SCORE)).runs) == 1
    grouped = rank_runs(RunValues(values=repeated, bounds=SCORE, groups=groups))
    alone = rank_runs(RunValues(values=found, bounds=SCORE))
    assert grouped.groups == 12
    assert [run.p for run in grouped.runs] == pytest.approx([run.p for run in alone.runs], abs=0.01)


@pytest.mark.simulation
@pytest.mark.parametrize("rows", worlds.SIZES)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_equal_runs_have_no_best_and_the_true_best_is_kept(
    kind: str, grouped: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best_of_many, "_PERMUTATIONS", 999)
    monkeypatch.setattr(best_of_many, "_DRAWS", 999)
    equal = worlds.simulate(kind, rows, 0.0, grouped, RUNS)
    one_best = worlds.simulate(kind, rows, 1.0, grouped, RUNS)
    assert equal.single <= 0.05
    assert equal.left_out <= 0.05 + 0.02  # the chance of a simulation of this size
    assert one_best.left_out <= 0.05
    assert equal.luck == pytest.approx(equal.lead, rel=0.2)
