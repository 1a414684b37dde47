"""Coverage of intervals and false alarms of tests, measured on simulated data whose truth is known.

Every bound leaves room for the chance of a simulation of this size (about three standard errors), no more.
"""

from functools import partial

import numpy as np
import pytest

from metric_core.gates import thresholds
from metric_core.gates.checks import check_gate
from metric_core.gates.rules import Gate, Outcome, RegressionRule, Threshold
from metric_core.gates.thresholds import check_mean
from metric_core.records import Direction, Score
from metric_core.statistics import comparison, paired_tests
from metric_core.statistics.comparison import ChangeOutcome, compare
from metric_core.statistics.paired_tests import TestKind, paired_test
from metric_core.statistics.pairs import Pairs, ScoreColumns
from metric_core.statistics.resampling import Units, bootstrap_mean
from metric_core.statistics.summary import mean_interval
from tests.metric_core.statistics.worlds import DIFFERENCES, SCORES, Draw, Floats, World

RUNS = 1000
RESAMPLES = 999
ALPHA = 0.05


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the resamples and a tenth of the permutations tell as much about hundreds of runs."""
    for module in (thresholds, comparison):
        monkeypatch.setattr(module, "bootstrap_mean", partial(bootstrap_mean, resamples=RESAMPLES))
    monkeypatch.setattr(paired_tests, "_PERMUTATIONS", RESAMPLES)
    monkeypatch.setattr("gc.collect", lambda: 0)  # statsmodels collects garbage at every correction of p-values


def names(world: World) -> str:
    return world.name


@pytest.mark.parametrize("world", [*SCORES, *DIFFERENCES[:3]], ids=names)
def test_an_interval_holds_the_true_mean_in_95_of_100_runs(world: World) -> None:
    generator = np.random.default_rng(7)
    held = 0
    for seed in range(RUNS):
        units = Units.from_values(world.draw(generator), world.groups)
        interval = bootstrap_mean(units, seed, resamples=RESAMPLES).interval()
        held += interval.low <= world.mean <= interval.high
    assert 0.93 <= held / RUNS <= 0.97


def test_the_interval_of_a_summary_holds_the_true_mean_of_skewed_scores() -> None:
    generator = np.random.default_rng(7)
    intervals = [mean_interval(SCORES[1].draw(generator)) for _ in range(400)]
    held = sum(interval is not None and interval.low <= SCORES[1].mean <= interval.high for interval in intervals)
    assert 0.92 <= held / 400 <= 0.98


def test_ignoring_groups_would_claim_too_much() -> None:
    generator = np.random.default_rng(7)
    world = SCORES[2]
    held = 0
    for seed in range(300):
        interval = bootstrap_mean(Units.from_values(world.draw(generator)), seed, resamples=RESAMPLES).interval()
        held += interval.low <= world.mean <= interval.high
    assert held / 300 < 0.85


@pytest.mark.parametrize("world", DIFFERENCES, ids=names)
def test_a_drop_of_just_the_margin_fails_in_5_of_100_runs_and_passes_in_5(world: World) -> None:
    generator = np.random.default_rng(3)
    runs = 400
    failed = passed = 0
    for seed in range(runs):
        units = Units.from_values(world.draw(generator), world.groups)
        finding = check_mean(units, Threshold(world.mean, is_floor=False), 1 - ALPHA, seed, "")
        failed += finding.p_met <= ALPHA
        passed += finding.p_violated <= ALPHA
    assert 0.02 <= failed / runs <= 0.08
    assert 0.02 <= passed / runs <= 0.1  # a little more than 5 where few rows are skewed


def pairs_of(a: Floats, b: Floats, groups: tuple[str, ...] | None = None) -> Pairs:
    return Pairs(None, tuple(f"{i:03}" for i in range(len(a))), a, b, groups)


def binary(generator: np.random.Generator) -> Floats:
    return (generator.random(200) < 0.7).astype(np.float64)


def continuous(generator: np.random.Generator) -> Floats:
    return generator.beta(4.0, 1.0, size=100)


def few_and_tied(generator: np.random.Generator) -> Floats:
    return generator.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=30)


@pytest.mark.parametrize(
    ("draw", "kind", "runs"),
    [
        (binary, TestKind.MCNEMAR, 1000),
        (continuous, TestKind.WILCOXON, 1000),
        (few_and_tied, TestKind.PERMUTATION, 300),
    ],
)
def test_runs_of_one_system_differ_in_at_most_5_of_100(draw: Draw, kind: TestKind, runs: int) -> None:
    generator = np.random.default_rng(5)
    alarms = 0
    for seed in range(runs):
        found = paired_test(pairs_of(draw(generator), draw(generator)), seed)
        assert found.kind is kind
        alarms += found.p <= ALPHA
    assert 0.01 <= alarms / runs <= 0.075


def test_groups_of_one_system_differ_in_at_most_5_of_100() -> None:
    generator = np.random.default_rng(5)
    world = SCORES[2]
    alarms = 0
    for seed in range(300):
        found = paired_test(pairs_of(world.draw(generator), world.draw(generator), world.groups), seed)
        assert found.kind is TestKind.GROUP_PERMUTATION
        alarms += found.p <= ALPHA
    assert 0.02 <= alarms / 300 <= 0.09


def columns_of(generator: np.random.Generator, metrics: int, drop: float) -> list[ScoreColumns]:
    rows = [f"{i:03}" for i in range(60)]
    columns = []
    for number in range(metrics):
        a = generator.normal(0.7, 0.1, size=len(rows))
        b = a - drop + generator.normal(0.0, 0.1, size=len(rows))
        cells = [{row: Score.scored(value) for row, value in zip(rows, side, strict=True)} for side in (a, b)]
        columns.append(ScoreColumns(metric=f"m{number}", direction=Direction.HIGHER, a=cells[0], b=cells[1]))
    return columns


def test_a_gate_over_many_metrics_fails_by_chance_in_5_of_100_runs() -> None:
    """Every true drop is just the margin, where a gate is most likely to fail by chance: nominally 4.9 of 100 runs."""
    generator = np.random.default_rng(11)
    runs = 500
    gate = Gate(regression=(RegressionRule(None, max_drop=0.05),))
    outcomes = [check_gate(gate, columns_of(generator, 6, drop=0.05), seed).outcome for seed in range(runs)]
    assert 0.02 <= outcomes.count(Outcome.FAILED) / runs <= 0.08
    assert outcomes.count(Outcome.PASSED) == 0


def test_many_equal_metrics_are_called_different_in_at_most_5_of_100_runs() -> None:
    generator = np.random.default_rng(11)
    runs = 200
    alarms = 0
    for seed in range(runs):
        found = compare(columns_of(generator, 6, drop=0.0), seed)
        alarms += any(metric.verdict in {ChangeOutcome.BETTER, ChangeOutcome.WORSE} for metric in found)
    assert alarms / runs <= 0.095


def test_a_true_drop_beyond_the_margin_is_found() -> None:
    generator = np.random.default_rng(11)
    gate = Gate(regression=(RegressionRule(None, max_drop=0.02),))
    outcomes = [check_gate(gate, columns_of(generator, 3, drop=0.12), seed).outcome for seed in range(20)]
    assert outcomes.count(Outcome.FAILED) >= 19
