"""Measure how soon questions that are asked again reveal another judge behind an unchanged name, and how often falsely.

    PYTHONPATH=. python benchmarks/judge_drift.py [--years 100] [--only TEXT] [--write]

A year is an anchor that is asked about again every night. The judge repeats a verdict with noise in its log-odds: a
part that is new at every question, as from batches on a busy server, and a part that lasts until the server starts
again. A changed judge gives a share of the verdicts otherwise from one night on. `--write` also puts the tables into
`benchmarks/results/judges.md`. Takes some ten minutes on one core.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.results_tables import publish
from metric_core.statistics.asked_again import RUNS_TESTED, count_rows
from metric_core.statistics.resampling import Floats
from tasks.findings.repeats.judge_drift import RUNS_READ, JudgeDriftDetector, PastRepeat, RowAnswers
from tasks.runtime.wording import format_percent

BEGIN, END = "<!-- begin: benchmarks/judge_drift.py -->", "<!-- end of judge drift -->"
YEAR = 365
START = datetime(2025, 1, 1, 3, tzinfo=UTC)
ONSET = 30


@dataclass(frozen=True)
class World:
    """A judge and an anchor.

    Args:
        name: Name in the tables.
        rows: Number of rows of the anchor.
        verdicts: Greatest number of verdicts of a row.
        noise: Standard deviation of the part of the log-odds that is new at every question.
        of_starts: Standard deviation of the part that stays until the server is started again.
        days_up: Days from one start of the server to the next.
        labels_only: True if the judge gives no probabilities.
        drift: Share of the verdicts that are others from `onset` on.
        onset: Night of the change, from 0.
    """

    name: str
    rows: int = 200
    verdicts: int = 6
    noise: float = 0.0
    of_starts: float = 0.0
    days_up: int = 7
    labels_only: bool = True
    drift: float = 0.0
    onset: int = ONSET


QUIET = (
    World("repeats itself exactly"),
    World("noise of batches, 1 % of the verdicts", noise=0.15),
    World("noise of batches, 5 %", noise=0.8),
    World("another 2 % after each start, weekly", noise=0.15, of_starts=0.3),
    World("another 2 % for good, every 100 days", noise=0.15, of_starts=0.3, days_up=100),
    World("probabilities, noise of batches, 1 %", noise=0.15, labels_only=False),
    World("60 rows, noise of batches, 1 %", rows=60, noise=0.15),
)

CHANGES = (
    *((200, 1, 0.1, share) for share in (0.05, 0.1, 0.2, 0.5)),
    *((200, 6, 0.1, share) for share in (0.02, 0.05, 0.1, 0.5)),
    (500, 1, 0.05, 0.05),
    (200, 1, 0.2, 0.2),
    (60, 1, 0.1, 0.1),
    (60, 6, 0.1, 0.1),
)
"""Rows of the anchor, verdicts of a row, the option `drift`, and the share of the verdicts that change."""


class Anchor:
    """The verdicts of a world's judge on the rows of its anchor.

    Args:
        world: The world.
        seed: Seed of everything random.
    """

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._generator = np.random.default_rng([seed, world.rows])
        verdicts = self._generator.integers(1, world.verdicts + 1, size=world.rows)
        self._row = np.repeat(np.arange(world.rows), verdicts)
        self._count = verdicts
        # Most verdicts are clear, some are not.
        self._odds = self._generator.choice([-1, 1], size=len(self._row)) * self._generator.gamma(
            2.0, 2.0, len(self._row)
        )
        self._of_start = np.zeros(len(self._row))
        self._others = self._generator.random(len(self._row)) < world.drift
        self._kept = self._answer(0)
        self.names = [f"row {row}" for row in range(world.rows)]

    def _answer(self, night: int) -> Floats:
        if self._world.of_starts and night % self._world.days_up == 0:
            self._of_start = self._generator.normal(0, self._world.of_starts, len(self._row))
        odds = np.where(self._others & (night >= self._world.onset), -self._odds, self._odds)
        noisy = odds + self._of_start + self._generator.normal(0, self._world.noise, len(self._row))
        found: Floats = 1 / (1 + np.exp(-noisy))
        return found

    def ask(self, night: int) -> dict[str, RowAnswers]:
        """Return the answers of a night about all rows, compared with the kept ones."""
        found = self._answer(night)
        is_other = (found > 0.5) != (self._kept > 0.5)
        distance = is_other.astype(float)
        if not self._world.labels_only:
            distance = np.maximum(distance, np.abs(found - self._kept))
        means = np.bincount(self._row, distance) / self._count
        others = np.bincount(self._row, is_other) > 0
        return {name: RowAnswers(float(means[row]), bool(others[row])) for row, name in enumerate(self.names)}


def share_of_noise(world: World) -> float:
    """Return the share of the verdicts that differ from the kept ones in a night without drift."""
    found = [sum(each.is_changed for each in Anchor(world, seed).ask(1).values()) for seed in range(20)]
    return float(np.mean(found)) / world.rows


def night_told(world: World, seed: int, nights: int, drift: float = 0.1) -> int | None:
    """Return the first night on which a change is reported, from 0; None if none is."""
    anchor, watch, past = Anchor(world, seed), JudgeDriftDetector(drift), list[PastRepeat]()
    for night in range(nights):
        start = START + timedelta(days=night)
        turn = watch.choose_turn(anchor.names, f"seed {seed}", start, past[-RUNS_READ:])
        answers = anchor.ask(night)
        found = watch.repeat(turn, "judge", {row: answers[row] for row in turn.rows})
        if found.change is not None:
            return night
        past.append(PastRepeat(start, turn.to_record().extend(judges=(found,))))
    return None


def quiet_years(years: int) -> Iterator[str]:
    """Yield a table of years in which the judge did not change."""
    yield "**False alarms.** Share of years without a change in which one was reported.\n\n"
    yield "| the judge | rows with another verdict in a night | years | reported |\n|---|---|---|---|\n"
    for world in QUIET:
        told = float(np.mean([night_told(world, seed, YEAR) is not None for seed in range(years)]))
        noise = format_percent(share_of_noise(world), 1)
        yield f"| {world.name} | {noise} | {years} | {format_percent(told, 1)} |\n"
    yield "\n"


def changed_years(years: int) -> Iterator[str]:
    """Yield a table of how soon changes are reported."""
    within = f"1, {RUNS_TESTED} and 30 nights"
    yield f"**Changes** after {ONSET} nights, noise of batches: share reported within {within}.\n\n"
    yield "| anchor | `drift` | rows a night | verdicts that change | 1 | 7 | 30 |\n|---|---|---|---|---|---|---|\n"
    for rows, verdicts, drift, of_verdicts in CHANGES:
        for labels_only in (True, False):
            world = replace(QUIET[1], rows=rows, verdicts=verdicts, drift=of_verdicts, labels_only=labels_only)
            found = [night_told(world, seed, ONSET + 30, drift) for seed in range(years)]
            late = np.array([np.inf if night is None else night - ONSET + 1 for night in found])
            shares = " | ".join(
                format_percent(float(np.mean((late > 0) & (late <= limit)))) for limit in (1, RUNS_TESTED, 30)
            )
            of = "one verdict" if verdicts == 1 else f"1 to {verdicts} verdicts"
            name = f"{rows} rows of {of}{'' if labels_only else ', probabilities'}"
            yield f"| {name} | {drift} | {count_rows(drift, rows)[0]} | {format_percent(of_verdicts)} | {shares} |\n"


def main() -> None:
    """Print the tables, and write them into the documentation on demand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--years", type=int, default=100, help="years per cell")
    parser.add_argument("--only", default="", help="part of the name of the table to measure")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/judges.md")
    options = parser.parse_args()
    tables = {"quiet": quiet_years, "changed": changed_years}
    parts = (part for name, table in tables.items() if options.only in name for part in table(options.years))
    publish(parts, BEGIN, END, write=options.write)


if __name__ == "__main__":
    main()
