"""Measure how often intervals, limits and tests of scores are right, in worlds whose truth is known.

    python -m benchmarks.coverage [--runs 1000] [--write]

Prints Markdown tables of the measured share of runs, and the average width. `--write` also puts them into
`benchmarks/results/runs.md`. Takes some minutes.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, expit, logit

from benchmarks.coverage_pairs import DRAWS, SCORE, Share, detectable_table, pair_tables, serial_table
from benchmarks.results_tables import publish
from metric_core.gates.rules import Threshold
from metric_core.gates.thresholds import Confidence, check_mean
from metric_core.statistics import bounded_means
from metric_core.statistics.bounded_means import BoundedMean, Bounds
from metric_core.statistics.judge_variance import JudgeVariance, estimate_judge_variance, split_variance
from metric_core.statistics.resampling import Floats, Units
from tasks.runtime.wording import format_percent
from tests.metric_core.statistics.worlds import (
    DIFFERENCES,
    GROUPED_SCORES,
    SCORES,
    UNEVEN,
    World,
    draw_groups,
)

BEGIN, END = "<!-- begin: benchmarks/coverage.py -->", "<!-- end -->"


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="runs per cell")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/runs.md")
    options = parser.parse_args()
    bounded_means._FEW_DRAWS = 0  # noqa: SLF001 no test is corrected for the number of tests
    publish(tables(options.runs), BEGIN, END, write=options.write)


def tables(runs: int) -> Iterator[str]:
    """Yield Markdown tables."""
    yield from table("Intervals of the mean", "rows", SCORES, (5, 20, 100), partial(coverage, SCORE, runs))
    yield from table(
        "Intervals of the mean, grouped rows",
        "groups of 5 rows",
        GROUPED_SCORES,
        (5, 15, 40),
        partial(coverage, SCORE, runs),
    )
    yield from table(
        "Intervals of the difference of two runs",
        "rows",
        DIFFERENCES,
        (5, 30, 300),
        partial(coverage, SCORE.of_differences, runs),
    )
    yield from table(
        "Gates: passes although the mean is just at the threshold (at most 5 %)",
        "rows",
        (*SCORES, *DIFFERENCES),
        (30, 300),
        lambda world, size: errors(world, size, runs)[0],
    )
    yield from table(
        "Gates: failures although the mean is just at the threshold (at most 5 %)",
        "rows",
        (*SCORES, *DIFFERENCES),
        (30, 300),
        lambda world, size: errors(world, size, runs)[1],
    )
    yield from pair_tables(runs)
    yield from detectable_table(runs)
    yield from serial_table(runs)
    yield from groups_table(runs)
    yield from weights_table(runs)
    yield from probability_table(runs)
    yield from still_table(runs)
    yield from year_tables(runs)
    yield from judge_tables(runs)


def table(
    title: str,
    unit: str,
    worlds: tuple[World, ...],
    sizes: tuple[int, ...],
    measure: Callable[[World, int], Share],
) -> Iterator[str]:
    """Yield a table of worlds and sizes."""
    yield f"### {title}\n\n| world | {' | '.join(f'{size} {unit}' for size in sizes)} |\n|---|{'---|' * len(sizes)}\n"
    for world in worlds:
        yield f"| {world.name} | {' | '.join(str(measure(world, size)) for size in sizes)} |\n"
    yield "\n"


def coverage(bounds: Bounds, runs: int, world: World, size: int) -> Share:
    """Return how often intervals contain the true mean, and their width."""
    generator, share, groups = np.random.default_rng([7, size]), Share(), world.groups(size)
    for seed in range(runs):
        interval = BoundedMean(
            Units.from_values(world.draw(generator, size), groups), bounds, seed, draws=DRAWS
        ).interval()
        share.add(interval.low - 1e-9 <= world.mean <= interval.high + 1e-9, interval.high - interval.low)
    return share


@cache
def errors(world: World, size: int, runs: int) -> tuple[Share, Share]:
    """Return how often a gate passes, and fails, a mean that is just at its threshold."""
    generator, passes, failures = np.random.default_rng([11, size]), Share(), Share()
    bounds = SCORE if world in SCORES else SCORE.of_differences
    for seed in range(runs):
        found = BoundedMean(Units.from_values(world.draw(generator, size)), bounds, seed, draws=DRAWS)
        passes.add(found.p_at_most(world.mean) <= 0.05)
        failures.add(found.p_at_least(world.mean) <= 0.05)
    return passes, failures


def groups_table(runs: int) -> Iterator[str]:
    """Yield a table of groups of different sizes; before, five effective groups were wanted."""
    yield "\n### Groups of different sizes: intervals (95 %), gates at the threshold that pass, fail (5 %)\n\n"
    yield "| groups | as good as | mean | correlation | interval, 24e2997e | **interval** | **passes** | **fails** |\n"
    yield f"|{'---|' * 8}\n"
    for name, sizes in UNEVEN.items():
        counts = np.array(sizes, dtype=np.float64)
        groups = Units(counts, counts)
        for mean, correlation in ((0.8, 0.5), (0.8, 0.02), (0.5, 0.5), (0.95, 0.5)):
            cells = list(map(str, cover_groups(counts, mean, correlation, runs)))
            before = cells[0] if groups.effective >= _EFFECTIVE_BEFORE else "none"
            yield f"| {name} | {groups.independent} | {mean:g} | {correlation:g} | {before} | {' | '.join(cells)} |\n"


def cover_groups(counts: Floats, mean: float, correlation: float, runs: int) -> list[Share]:
    """Return intervals that contain the mean, and gates that pass and fail at it."""
    generator, shares = np.random.default_rng([123, len(counts)]), [Share() for _ in range(3)]
    for seed in range(runs):
        found = BoundedMean(draw_groups(generator, counts, mean, correlation), SCORE, seed, draws=DRAWS)
        ends = found.interval()
        shares[0].add(ends.low - 1e-9 <= mean <= ends.high + 1e-9, ends.high - ends.low)
        shares[1].add(found.p_at_most(mean) <= 0.05)
        shares[2].add(found.p_at_least(mean) <= 0.05)
    return shares


_EFFECTIVE_BEFORE = 5
TOPICS = np.array([0.95, 0.7])
"""Mean scores of two topics, each half of the traffic; the first has four of five rows."""


def weights_table(runs: int) -> Iterator[str]:
    """Yield a table of rows that are unlike the traffic, with each row counted once, and weighted."""
    yield "\n### A topic with 80 % of the rows and 50 % of the traffic: intervals that contain its mean (95 %)\n\n"
    yield f"| rows | each once, as in 24e2997e | **weights, probabilities** | **shares** |\n|{'---|' * 4}\n"
    for rows in (50, 100, 300, 1000):
        generator, shares = np.random.default_rng([129, rows]), [Share() for _ in range(3)]
        for seed in range(runs):
            topic = (generator.random(rows) < 0.2) * 1
            topic[:2] = 0, 1
            values = (generator.random(rows) < TOPICS[topic]) * 1.0
            for share, weights in zip(
                shares, (None, np.array([0.625, 2.5])[topic], 0.5 / np.bincount(topic)[topic]), strict=True
            ):
                units = Units.from_values(values, None, None if weights is None else weights / weights.mean())
                ends = BoundedMean(units, SCORE, seed, draws=DRAWS).interval()
                share.add(ends.low <= TOPICS.mean() <= ends.high, ends.high - ends.low)
        yield f"| {rows:,} | {' | '.join(map(str, shares))} |\n"


def probability_table(runs: int) -> Iterator[str]:
    """Yield a table of probabilities as scores of 300 claims, of which 75 % are supported."""
    yield "\n### Probabilities as scores, of a share of 0.75: mean, intervals that contain it (95 % if calibrated)\n\n"
    yield f"| judge | mean | interval |\n|{'---|' * 3}\n"
    for name, factor in (("calibrated", 1.0), ("too sure", 1.8), ("not sure enough", 0.5)):
        world = World("", lambda g, n, by=factor: expit(by * logit(g.beta(3, 1, n))), 0.75)
        share = coverage(SCORE, runs, world, 300)
        mean = float(world.draw(np.random.default_rng(3), 1_000_000).mean())
        yield f"| {name} | {mean:.2f} | {share} |\n"


def still_table(runs: int) -> Iterator[str]:
    """Yield a table of intervals of differences of 0/1 scores of which few fall."""
    yield "\n### Of 0/1 scores, a share falls: intervals that contain the difference (95 %)\n\n"
    yield f"| share | 20 rows | 30 rows | 50 rows | 100 rows |\n|{'---|' * 5}\n"
    for fallen in (0.01, 0.03, 0.045, 0.07, 0.105, 0.2):
        world = World("", lambda g, n, share=fallen: -1.0 * (g.random(n) < share), -fallen)
        cells = [coverage(SCORE.of_differences, runs, world, rows) for rows in (20, 30, 50, 100)]
        yield f"| {format_percent(fallen, 1)} | {' | '.join(map(str, cells))} |\n"


NIGHTS = 366
BAR = 0.9


@dataclass(frozen=True)
class Nightly:
    """An evaluation of the same questions every night, scored 0 or 1.

    Args:
        correlation: Correlation of two answers to the same question.
        changing: Share of the answers that are drawn again every night.
    """

    name: str = "a fifth of the answers change every night"
    rows: int = 200
    correlation: float = 0.5
    changing: float = 0.2

    def failures(self, mean: float, seed: int, nights: int = NIGHTS) -> NDArray[np.bool_]:
        """Return on which nights a gate fails, at one look and at one of 366, as 2 x nights."""
        generator, rows = np.random.default_rng([29, seed]), self.rows
        size = 1 / self.correlation - 1 if self.correlation else np.inf
        good = generator.beta(mean * size, (1 - mean) * size, rows) if self.correlation else np.full(rows, mean)
        answers, counts = generator.random(rows) < good, np.empty(nights)
        for night in range(nights):
            answers = np.where(generator.random(rows) < self.changing, generator.random(rows) < good, answers)
            counts[night] = answers.sum()
        p = betainc(rows - counts, counts + 1, 1 - BAR)  # Clopper and Pearson, as `check_mean` for scores of 0 and 1
        return np.stack([p <= 0.05, p <= 1 - Confidence(0.95, NIGHTS).of_failure])


NIGHTLY = (
    Nightly(),
    Nightly("all answers change every night", changing=1.0),
    Nightly("all questions are new every night", correlation=0.0, changing=1.0),
    Nightly("an answer stays for 50 nights", changing=0.02),
    Nightly(rows=60),
    Nightly(rows=1000),
)


def year_tables(runs: int) -> Iterator[str]:
    """Yield tables of gates that are applied every night, for one look and for 366."""
    yield "\n### A gate at 0.9 every night: failed nights a year, and years with a failed night\n\n"
    yield f"| world | rows | true mean | `looks = 1` | | **`looks = 366`** | |\n|{'---|' * 7}\n"
    for world in NIGHTLY:
        for mean in (BAR, BAR + 0.02):
            years, nights = [Share(), Share()], np.zeros(2)
            for seed in range(runs):
                found = world.failures(mean, seed)
                nights += found.sum(axis=1)
                for share, is_failed in zip(years, found.any(axis=1), strict=True):
                    share.add(bool(is_failed))
            cells = " | ".join(f"{count / runs:.1f} | {share}" for count, share in zip(nights, years, strict=True))
            yield f"| {world.name} | {world.rows:,} | {mean:g} | {cells} |\n"
    yield "\n### The same gate after a drop below 0.9: it has failed by night 1, 5, 30\n\n"
    yield f"| rows | true mean | `looks = 1` | | | **`looks = 366`** | | |\n|{'---|' * 8}\n"
    for rows in (200, 1000):
        for mean in (0.87, 0.85, 0.82, 0.8):
            shares = [Share() for _ in range(6)]
            for seed in range(runs):
                found = Nightly(rows=rows).failures(mean, seed, 30)
                has_failed = [bool(each[:nights].any()) for each in found for nights in (1, 5, 30)]
                for share, is_failed in zip(shares, has_failed, strict=True):
                    share.add(is_failed)
            yield f"| {rows:,} | {mean:g} | {' | '.join(map(str, shares))} |\n"


UNSURE = (0.02, 0.1, 0.3)
"""Shares of rows that the judge is not sure of; it repeats its verdict on the others."""


def judge_tables(runs: int) -> Iterator[str]:
    """Yield tables of the judge's share of the variance, and of gates that its noise decides."""
    yield "\n### The judge's share of the variance of a mean of 300 rows: estimate, intervals that hold it (95 %)\n\n"
    yield f"| score | rows the judge is unsure of | true share | 20 rows again | 50 | 100 |\n|{'---|' * 6}\n"
    for claims in (1, 4):
        for unsure in UNSURE:
            good = unsure_rows(np.random.default_rng(37), 1_000_000, unsure)
            noise = float((good * (1 - good)).mean()) / claims
            true = noise / (noise + float(good.var()))
            cells = [judge_share(claims, unsure, again, true, runs) for again in (20, 50, 100)]
            name = "0/1" if claims == 1 else f"share of {claims} claims"
            yield f"| {name} | {unsure:.0%} | {true:.3f} | {' | '.join(cells)} |\n".replace("%", " %", 1)
    yield "\n### A gate near its bar, the same 200 answers judged twice: one passes and one fails (at most 0.5 %)\n\n"
    yield "Distance of the limit from the bar, in standard deviations of the judge's noise. Undecided before and after "
    yield "the rows were asked again.\n\n"
    yield "| rows the judge is unsure of | rows again | distance | noise unknown | noise known "
    yield f"| **rows asked again** | undecided before | **after** |\n|{'---|' * 8}\n"
    for unsure in UNSURE:
        for again in (20, 50, 100):
            for distance in (0, 1, 2, 3):
                shares = " | ".join(map(str, gate_flips(unsure, again, distance, runs)))
                yield f"| {unsure:.0%} | {again} | {distance} | {shares} |\n".replace("%", " %", 1)


def unsure_rows(generator: np.random.Generator, rows: int, unsure: float) -> Floats:
    """Return how probably the judge calls each claim of a row good: 0 or 1, but for some rows."""
    sure = (generator.random(rows) < 0.85) * 1.0
    return np.where(generator.random(rows) < unsure, generator.beta(2, 2, rows), sure)


def judge_share(claims: int, unsure: float, again: int, true: float, runs: int) -> str:
    """Return the mean estimate, and how often the interval holds the true share, with its width."""
    share, total = Share(), 0.0
    for seed in range(runs):
        generator = np.random.default_rng([53, seed])
        good = unsure_rows(generator, 300, unsure)
        scores, new = (generator.binomial(claims, good) / claims for _ in range(2))
        found = split_variance(scores, _judged_again(scores, new, again))
        assert found is not None
        assert found.judge_interval is not None
        ends = found.judge_interval
        share.add(ends.low - 1e-9 <= true <= ends.high + 1e-9, ends.high - ends.low)
        total += found.judge
    return f"{total / runs:.3f}, {share}"


def gate_flips(unsure: float, again: int, distance: float, runs: int) -> list[Share]:
    """Return how often one of two judgments passes and the other fails: noise unknown, known, and rows asked again.

    Then the share of undecided gates before and after rows were asked again.
    """
    shares, rows = [Share() for _ in range(5)], 200
    for seed in range(runs):
        generator = np.random.default_rng([47, seed])
        good = unsure_rows(generator, rows, unsure)
        count = good.sum() + distance * np.sqrt((good * (1 - good)).sum())
        bar = Threshold(float(betaincinv(good.sum(), rows - good.sum() + 1, 0.05)) - (count - good.sum()) / rows)
        found = []
        for _ in range(2):
            scores, new = (generator.binomial(1, good) * 1.0 for _ in range(2))
            variance = _judged_again(scores, new, again)
            sampled = np.where(np.arange(rows) < again, (scores + new) / 2, scores)
            first = _passes(sampled, bar, variance.span(rows, again))
            asked = first
            if first is None:
                asked = _passes((scores + new) / 2, bar, _judged_again(scores, new, rows).span(rows, rows))
            found.append((_passes(scores, bar, 0.0), first, asked))
        for share, (one, other) in zip(shares, zip(*found, strict=True), strict=False):
            share.add({one, other} == {True, False})
        shares[3].add(found[0][1] is None)
        shares[4].add(found[0][2] is None)
    return shares


def _passes(scores: Floats, bar: Threshold, noise: float) -> bool | None:
    """Return whether a gate passes; None if the noise of the judge decides it."""
    finding = check_mean(Units.from_values(scores), bar, Confidence(0.95, noise=noise), SCORE)
    outcomes = {each.p_violated <= 0.05 for each in (finding, *finding.judged_again)}
    return None if len(outcomes) > 1 else outcomes.pop()


def _judged_again(scores: Floats, new: Floats, again: int) -> JudgeVariance:
    found = estimate_judge_variance([{str(row): [scores[row], new[row]] for row in range(again)}], SCORE)
    assert found is not None
    return found


if __name__ == "__main__":
    main()
