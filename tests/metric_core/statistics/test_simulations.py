"""Coverage of intervals and false alarms of tests, measured on simulated data whose truth is known.

Every bound leaves room for the chance of a simulation of this size (about three standard errors), no more.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from metric_core.gates import thresholds
from metric_core.gates.checks import check_gate
from metric_core.gates.rules import Gate, Outcome, RegressionRule, Threshold
from metric_core.gates.thresholds import Confidence, RandomStream, check_mean
from metric_core.records import Direction, Score
from metric_core.statistics import paired_tests
from metric_core.statistics.bounded_means import BoundedMean, Bounds, estimate_interval
from metric_core.statistics.comparison import ChangeOutcome, compare_metrics
from metric_core.statistics.paired_tests import TestKind, paired_test
from metric_core.statistics.pairs import Pairs, ScoreColumns
from metric_core.statistics.resampling import Units
from tests.metric_core.statistics.worlds import DIFFERENCES, GROUPED_SCORES, MIDDLING, SCORES, Floats, World

RUNS = 300
DRAWS = 499
ALPHA = 0.05
SCORE = Bounds(0.0, 1.0)


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the draws and of the permutations tell as much about hundreds of runs."""
    bounded = partial(BoundedMean, draws=DRAWS)
    monkeypatch.setattr(thresholds, "BoundedMean", bounded)
    monkeypatch.setattr("metric_core.statistics.bounded_means.BoundedMean", bounded)
    monkeypatch.setattr("metric_core.statistics.bounded_means._FEW_DRAWS", 0)
    monkeypatch.setattr(paired_tests, "_PERMUTATIONS", 999)


def names(world: World) -> str:
    return world.name


def coverage(world: World, size: int, bounds: Bounds) -> float:
    generator = np.random.default_rng(7)
    groups = world.groups(size)
    held = 0
    for seed in range(RUNS):
        interval = estimate_interval(Units.from_values(world.draw(generator, size), groups), bounds, seed)
        assert interval is not None
        held += interval.low <= world.mean <= interval.high
    return held / RUNS


@pytest.mark.simulation
def test_an_interval_holds_the_true_mean_in_95_of_100_runs() -> None:
    for size in [5, 20, 100]:
        for world in SCORES:
            # Few rows of 0 and 1 have few possible intervals, which cannot all hold equally often.
            assert coverage(world, size, SCORE) >= (0.9 if world.is_discrete and size == 5 else 0.915), (world, size)


@pytest.mark.simulation
@pytest.mark.parametrize("world", MIDDLING, ids=names)
def test_an_interval_of_middling_scores_is_as_narrow_as_the_normal_limit(world: World) -> None:
    generator = np.random.default_rng(7)
    bounded = normal = 0.0
    for seed in range(20):
        units = Units.from_values(world.draw(generator, 100))
        interval = BoundedMean(units, SCORE, seed).interval()
        bounded += interval.high - interval.low
        normal += 2 * 1.96 * float(units.sums.std(ddof=1)) / 10
    assert 0.9 < bounded / normal < 1.1
    assert coverage(world, 100, SCORE) <= 0.985


@pytest.mark.simulation
def test_an_interval_of_groups_holds_the_true_mean_in_95_of_100_runs() -> None:
    for size in [5, 15]:
        for world in GROUPED_SCORES:
            assert coverage(world, size, SCORE) >= 0.915, (world, size)


@pytest.mark.simulation
def test_an_interval_of_differences_holds_the_true_mean_in_95_of_100_runs() -> None:
    for size in [5, 30, 100]:
        for world in DIFFERENCES:
            assert coverage(world, size, SCORE.of_differences) >= 0.915, (world, size)


def test_ignoring_groups_would_claim_too_much() -> None:
    world = GROUPED_SCORES[1]
    generator = np.random.default_rng(7)
    intervals = [
        BoundedMean(Units.from_values(world.draw(generator, 20)), SCORE, seed).interval() for seed in range(200)
    ]
    assert sum(interval.low <= world.mean <= interval.high for interval in intervals) / 200 < 0.85


@pytest.mark.simulation
def test_a_mean_just_at_its_threshold_passes_and_fails_in_at_most_5_of_100_runs() -> None:
    cases: list[World] = [*SCORES, *DIFFERENCES]
    for size in [30, 100]:
        for world in cases:
            generator = np.random.default_rng(3)
            bounds = SCORE if world in SCORES else SCORE.of_differences
            failed = passed = 0
            for seed in range(RUNS):
                units = Units.from_values(world.draw(generator, size))
                finding = check_mean(units, Threshold(world.mean), Confidence(1 - ALPHA), bounds, RandomStream(seed))
                failed += finding.p_met <= ALPHA
                passed += finding.p_violated <= ALPHA
            assert failed / RUNS <= 0.088, (world, size)
            assert passed / RUNS <= 0.088, (world, size)


def pairs_of(a: Floats, b: Floats, groups: tuple[str, ...] | None = None) -> Pairs:
    return Pairs(None, tuple(f"{i:03}" for i in range(len(a))), a, b, groups)


def binary(generator: np.random.Generator) -> Floats:
    return (generator.random(200) < 0.7).astype(np.float64)


def continuous(generator: np.random.Generator) -> Floats:
    return generator.beta(4.0, 1.0, size=100)


def few_and_tied(generator: np.random.Generator) -> Floats:
    return generator.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=30)


@pytest.mark.parametrize(
    ("draw", "kind"),
    [(binary, TestKind.MCNEMAR), (continuous, TestKind.PERMUTATION), (few_and_tied, TestKind.PERMUTATION)],
)
def test_runs_of_one_system_differ_in_at_most_5_of_100(
    draw: Callable[[np.random.Generator], Floats], kind: TestKind
) -> None:
    generator = np.random.default_rng(5)
    alarms = 0
    for seed in range(RUNS):
        found = paired_test(pairs_of(draw(generator), draw(generator)), seed)
        assert found.kind is kind
        alarms += found.p <= ALPHA
    assert 0.01 <= alarms / RUNS <= 0.088


def test_groups_of_one_system_differ_in_at_most_5_of_100() -> None:
    generator = np.random.default_rng(5)
    world = GROUPED_SCORES[3]
    groups = tuple(world.groups(30) or ())
    alarms = 0
    for seed in range(RUNS):
        found = paired_test(pairs_of(world.draw(generator, 30), world.draw(generator, 30), groups), seed)
        assert found.kind is TestKind.GROUP_PERMUTATION
        alarms += found.p <= ALPHA
    assert 0.01 <= alarms / RUNS <= 0.088


def test_a_shift_of_most_rows_without_a_change_of_the_mean_is_found_in_at_most_5_of_100() -> None:
    """A test of ranks would find one nearly always."""
    world = DIFFERENCES[4]
    generator = np.random.default_rng(5)
    draws = [world.draw(generator, 100) for _ in range(RUNS)]
    alarms = sum(paired_test(pairs_of(np.zeros(100), draw), seed).p <= ALPHA for seed, draw in enumerate(draws))
    assert alarms / RUNS <= 0.088


def test_low_scores_that_one_run_lacks_make_it_no_better() -> None:
    generator = np.random.default_rng(19)
    rows = [f"{i:03}" for i in range(100)]
    found = []
    for seed in range(60):
        quality = generator.beta(2, 2, 100)
        a, b = (np.clip(quality + generator.normal(0, 0.2, 100), 0, 1) for _ in range(2))
        is_missing = (b < np.quantile(b, 0.34)) & (generator.random(100) < 0.5)
        cells = [{row: Score.scored(float(value)) for row, value in zip(rows, side, strict=True)} for side in (a, b)]
        cells[1] |= {row: Score.failed("no usable reply") for row, gone in zip(rows, is_missing, strict=True) if gone}
        columns = ScoreColumns(metric="m", direction=Direction.HIGHER, a=cells[0], b=cells[1], bounds=(0.0, 1.0))
        found += [metric.verdict for metric in compare_metrics([columns], seed)]
    assert found.count(ChangeOutcome.BETTER) <= 2
    assert ChangeOutcome.UNDECIDED in found


def columns_of(generator: np.random.Generator, metrics: int, drop: float) -> list[ScoreColumns]:
    rows = [f"{i:03}" for i in range(60)]
    columns = []
    for number in range(metrics):
        a = generator.normal(0.7, 0.1, size=len(rows))
        b = a - drop + generator.normal(0.0, 0.1, size=len(rows))
        cells = [{row: Score.scored(value) for row, value in zip(rows, side, strict=True)} for side in (a, b)]
        columns.append(
            ScoreColumns(metric=f"m{number}", direction=Direction.HIGHER, a=cells[0], b=cells[1], bounds=(0.0, 1.0))
        )
    return columns


@pytest.mark.simulation
def test_a_gate_over_many_metrics_fails_by_chance_in_at_most_5_of_100_runs() -> None:
    """Every true drop is just the margin, where a gate is most likely to fail by chance."""
    generator = np.random.default_rng(11)
    runs = 100
    gate = Gate(regression=(RegressionRule(None, max_drop=0.05),))
    outcomes = [check_gate(gate, columns_of(generator, 6, drop=0.05), seed).outcome for seed in range(runs)]
    assert outcomes.count(Outcome.FAILED) / runs <= 0.1
    assert outcomes.count(Outcome.PASSED) == 0


@pytest.mark.simulation
def test_many_equal_metrics_are_called_different_in_at_most_5_of_100_runs() -> None:
    generator = np.random.default_rng(11)
    runs = 100
    alarms = 0
    for seed in range(runs):
        found = compare_metrics(columns_of(generator, 6, drop=0.0), seed)
        alarms += any(metric.verdict in {ChangeOutcome.BETTER, ChangeOutcome.WORSE} for metric in found)
    assert alarms / runs <= 0.12


def test_a_true_drop_beyond_the_margin_is_found() -> None:
    generator = np.random.default_rng(11)
    gate = Gate(regression=(RegressionRule(None, max_drop=0.02),))
    outcomes = [check_gate(gate, columns_of(generator, 3, drop=0.12), seed).outcome for seed in range(20)]
    assert outcomes.count(Outcome.FAILED) >= 19
