"""Simulate 12 runs of the same rows: how often one is called the best if all are equal, and whether the best is kept.

Scores are 0 or 1, mostly 1, in fifths, or shares of claims; each row is hard or easy for all runs, and half of the
answers are shared. With groups, five rows each are about one document, which suits some runs better than others.

    python -m benchmarks.best_of_many --runs 400
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from metric_core.statistics import best_of_many
from metric_core.statistics.best_of_many import RunValues, rank_runs
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.resampling import Floats

SYSTEMS = 12
A_GROUP = 5
SIZES = (50, 200, 1000)
MANY = 100_000
KINDS = {"0 or 1": 1.5, "0 or 1, mostly 1": 4.2, "fifths": 0.5, "share of claims": 1.5}
"""Kind of the scores -> the middle of the logits of a good answer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Shares of the simulated comparisons.

    Args:
        single: A single best is named.
        left_out: A truly best run is left out, on average over the truly best ones.
        named: Number of runs that may be the best.
        beyond: Some run is truly further behind the best than at most.
        luck: Lead of the highest mean over the average of all, as expected for equal runs.
        lead: The same, observed.
    """

    single: float
    left_out: float
    named: float
    beyond: float
    luck: float
    lead: float


def draw(generator: np.random.Generator, kind: str, rows: int, lead: float, grouped: bool) -> Floats:
    """Return scores as rows x runs; the first run is better by a lead in logits."""
    hard = generator.normal(0, 1.2, (rows, 1))
    suits = generator.normal(0, 0.7, (rows, SYSTEMS))
    if grouped:
        documents = np.repeat(np.arange(rows // A_GROUP), A_GROUP)
        hard = hard + generator.normal(0, 1, (rows // A_GROUP, 1))[documents]
        suits = suits + generator.normal(0, 1, (rows // A_GROUP, SYSTEMS))[documents]
    good = expit(KINDS[kind] + hard + suits + lead * (np.arange(SYSTEMS) == 0))
    shared = generator.random((rows, SYSTEMS)) < 0.5
    chance = np.where(shared, generator.random((rows, 1)), generator.random((rows, SYSTEMS)))
    if kind == "fifths":
        return np.round(np.clip(good + 0.6 * (0.5 - chance), 0, 1) * 4) / 4
    if kind == "share of claims":
        claims = generator.integers(1, 6, (rows, 1))
        supported = np.floor(good**0.3 * (claims + 1) * 0.999 - (chance > good) * claims * 0.6)
        return np.clip(supported, 0, claims) / claims
    return (chance < good).astype(float)


def simulate(kind: str, rows: int, lead: float, grouped: bool, runs: int) -> Outcome:
    """Compare runs of a world many times."""
    generator = np.random.default_rng([rows, grouped, bool(lead)])
    groups = [str(row // A_GROUP) for row in range(rows)] if grouped else None
    best = 1 if lead else SYSTEMS
    truth = draw(np.random.default_rng(1), kind, MANY, lead, grouped).mean(axis=0)
    behind = (truth[0] - truth[1:].mean()) * (np.arange(SYSTEMS) > 0) if lead else np.zeros(SYSTEMS)
    found = [list(_compare(draw(generator, kind, rows, lead, grouped), groups, best, behind)) for _ in range(runs)]
    return Outcome(*np.mean(found, axis=0))


def _compare(values: Floats, groups: Sequence[str] | None, best: int, behind: Floats) -> Iterator[float]:
    ranking = rank_runs(RunValues(values=values, bounds=Bounds(0.0, 1.0), groups=groups))
    may_be_best = [run.may_be_best for run in ranking.runs]
    means = values.mean(axis=0)
    yield sum(may_be_best) == 1
    yield 1 - sum(may_be_best[:best]) / best
    yield sum(may_be_best)
    yield any((run.at_most or 0.0) < true for run, true in zip(ranking.runs, behind, strict=True))
    yield ranking.luck
    yield means.max() - means.mean()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="comparisons per cell")
    parser.add_argument("--lead", type=float, default=1.0, help="lead of the best run, in logits")
    arguments = parser.parse_args()
    for name in ("_DRAWS", "_PERMUTATIONS"):  # a tenth of the draws tell as much about hundreds of runs
        setattr(best_of_many, name, 3_000)
    equal = "single best, all equal | a best one left out, all equal | luck: expected, observed"
    one_best = "the one best left out | named alone | runs that may be the best | a limit too low"
    print(f"| scores | rows | {equal} | {one_best} |")
    print("|---" * 9 + "|")
    for kind in KINDS:
        for grouped in (False, True):
            for rows in SIZES:
                one = simulate(kind, rows, 0.0, grouped, arguments.runs)
                two = simulate(kind, rows, arguments.lead, grouped, arguments.runs)
                cells = (
                    f"{kind}{', groups' * grouped}",
                    f"{rows:,}",
                    f"{one.single:.1%}",
                    f"{one.left_out:.1%}",
                    f"{one.luck:.4f}, {one.lead:.4f}",
                    f"{two.left_out:.1%}",
                    f"{two.single:.0%}",
                    f"{two.named:.1f}",
                    f"{two.beyond:.1%}",
                )
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
