"""Measure alarms about further drops in simulated nights: how often they are false, and how soon they tell one.

    PYTHONPATH=. python benchmarks/further_drops.py [--years 200] [--only TEXT] [--write]

The world is that of `benchmarks/nights.py`. A drop comes in the third or fourth week, is told, and stays for the rest
of the year. In the years of the first table nothing else happens, so every further alarm is false. In those of the
second, as much is lost again two weeks later. `--write` also puts the tables into `docs/statistics-alarms.md`. Takes
ten minutes on one core.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.docs_tables import publish
from benchmarks.nights import KINDS, METRICS, YEAR, Drift, MonitoredYear, Simulation, World, percent
from metric_core.statistics.alarms import (
    RUNS_ADDED,
    SHARE_OF_FURTHER,
    AlarmSettings,
    find_raised,
    shares_of,
    update_alarms,
)
from metric_core.statistics.further_drops import RUNS_COMPARED, update_further_alarms
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Panel, Stream

BEGIN, END = "<!-- begin: benchmarks/further_drops.py -->", "<!-- end of further drops -->"

CHECKED = 3
"""Number of nights of each year on which the product is asked as well."""


@dataclass(frozen=True)
class TwoDrops(Simulation):
    """Nights with two drops of the same metrics.

    Args:
        again: First day of the second drop, which is as large as the first; after the year for none.
    """

    again: int = 10 * YEAR

    @cached_property
    def scores(self) -> Floats:
        """Scores of the baseline and of all runs; rows that were lost before may be lost again."""
        scores = super().scores.copy()
        drift, is_late = self.drift, np.concatenate([[False], self.days_run >= self.again])
        if drift is None or not is_late.any():
            return scores
        generator = np.random.default_rng([self.seed, 23])
        for metric in drift.metrics:
            before = scores[~is_late][1:, :, metric][self.days_run[self.days_run < self.again] >= self.onset]
            is_anywhere = drift.kind == "anywhere"
            nights = int(is_late.sum()) if is_anywhere else 1
            share = drift.size / float(np.nanmean(before)) * (2 if drift.kind == "half" else 1)
            lost = generator.random((nights, self.world.rows)) < share
            kept = 0.5 if drift.kind == "half" else 0.0
            scores[is_late, :, metric] *= np.where(lost, kept, 1.0)
        return scores


@dataclass
class Followed:
    """A metric that was watched from the night of its first alarm on.

    Args:
        panel: Improvements of all nights.
        stream: The metric.
        told: Index of the night of its alarm.
    """

    panel: Panel
    stream: Stream
    told: int

    @cached_property
    def raised(self) -> list[int]:
        """Indices of the nights on which a further alarm is raised, if no earlier one stands."""
        settings = AlarmSettings()
        share = float(shares_of(self.panel.streams)[self.panel.streams.index(self.stream)])
        error = settings.error * SHARE_OF_FURTHER * share
        part, last = self.panel.only([self.stream]), len(self.panel.runs)
        numbers = settings.weights(range(1, last + 1))
        found = []
        # The first nights after an alarm are compared with the few before them, and the others with three.
        for nights in range(1, RUNS_COMPARED + 1):
            start = self.told + nights
            until = min(start + 1, last) if nights < RUNS_COMPARED else last
            later = part.select(range(start, until)).compared_with(part.select(range(self.told, start)))
            place = [later.streams.index(self.stream)]
            means, weights = later.means()[:, place], numbers[start:until]
            log_e = later.log_e_values(range(len(later.runs)))
            for night in range(len(means)):
                seen = slice(max(0, night + 1 - RUNS_ADDED), night + 1)
                if find_raised(log_e[seen][:, place], means[seen], weights[seen], np.ones(1), error)[0]:
                    found.append(start + night)
        return found

    def check(self, night: int) -> None:
        """Check that the product raises an alarm on a night if and only if it is one of `raised`."""
        alarms = update_alarms(self.panel.select(range(self.told + 1)), self.told + 1)
        standing = [replace(alarm, is_new=False) for alarm in alarms if alarm.stream == self.stream]
        known = self.panel.select(range(night + 1))
        assert bool(update_further_alarms(known, known, night + 1, known=standing)) == (night in self.raised)


def follow(simulation: Simulation) -> list[Followed]:
    """Return the metrics that have an alarm because of the first drop."""
    drift = simulation.drift
    assert drift is not None
    watched = MonitoredYear(simulation.panel)
    last = simulation.days_run < getattr(simulation, "again", 10 * YEAR)
    found = []
    for metric in drift.metrics:
        stream = Stream(METRICS[metric])
        place = watched.panel.streams.index(stream)
        told = np.flatnonzero(watched.raised[:, place] & last)
        if len(told):
            found.append(Followed(watched.panel, stream, int(told[0])))
    return found


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--years", type=int, default=200, help="years of the first lines")
    parser.add_argument("--only", default="", help="tables whose name contains this text")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/statistics-alarms.md")
    options = parser.parse_args()
    parts = (part for name, table in TABLES.items() if options.only in name for part in table(options.years))
    publish(parts, BEGIN, END, write=options.write)


def quiet(years: int) -> Iterator[str]:
    """Yield a table of false further alarms."""
    yield (
        "**False alarms about further drops.** Years in which two metrics drop once, and stay where they are.\n\n"
        "| rows | groups | answers that change | drop | years told | with any further alarm |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
    )
    lines = (
        (300, "", 0.2, 0.1),
        (300, "", 0.5, 0.15),
        (500, "", 0.2, 0.05),
        (100, "", 0.2, 0.2),
        (500, "1 to 9", 0.2, 0.2),
        (500, "lognormal", 0.2, 0.2),
        (500, "one of 60 %", 0.2, 0.2),
    )
    for number, (rows, groups, changing, size) in enumerate(lines):
        world = World("", rows, changing, groups=groups)
        followed = [_year(world, size, seed) for seed in range(max(1, years // (4 if number else 1)))]
        told = [year for year in followed if year]
        false = sum(any(metric.raised for metric in year) for year in told)
        start = f"| {rows} | {groups or '-'} | {changing:.0%} | {size} | {len(told)} |".replace("0%", "0 %")
        yield f"{start} **{percent(false / max(1, len(told)))}** |\n"
    yield "\n"


def _year(world: World, size: float, seed: int) -> list[Followed]:
    onset = 20 + seed % 7
    return follow(Simulation(world, seed, YEAR, Drift(KINDS[seed % 3], size), onset))


def drops(years: int) -> Iterator[str]:
    """Yield a table of how soon further drops are told."""
    yield (
        "**Further drops** of the same size two weeks after the first. Nights count from the first one of the further "
        "drop.\n\n| rows | groups | answers that change | drop | metrics told of the first drop "
        "| told after, median nights | within 5 | within 30 | told before it came |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    lines = (
        (300, "", 0.2, 0.1),
        (300, "", 0.5, 0.1),
        (300, "", 0.2, 0.05),
        (500, "", 0.2, 0.1),
        (100, "", 0.2, 0.2),
        (500, "1 to 9", 0.2, 0.2),
    )
    for number, (rows, groups, changing, size) in enumerate(lines):
        world = World("", rows, changing, groups=groups)
        nights, early = [], 0
        for seed in range(max(1, years // (4 if number else 1))):
            onset = 20 + seed % 7
            drift, again = Drift(KINDS[seed % 3], size), onset + 14
            simulation = TwoDrops(world, seed, again + 30, drift, onset, again)
            for metric in follow(simulation):
                if seed % 20 == 0:
                    checked = np.linspace(metric.told + 1, len(simulation.days_run) - 1, CHECKED)
                    for night in checked.astype(int):
                        metric.check(int(night))
                days = simulation.days_run[metric.raised]
                early += bool((days < again).any())
                late = days[days >= again]
                nights.append(int(late[0]) - again + 1 if len(late) else 99)
        start = f"{rows} | {groups or '-'} | {changing:.0%} | {size} | {len(nights)}".replace("0%", "0 %")
        yield f"| {start} | {' | '.join(_describe(nights, early))} |\n"
    yield "\n"


def _describe(nights: Sequence[int], early: int) -> list[str]:
    values = np.array(nights or [99])
    median = float(np.median(values))
    shares = [(values <= 5).mean(), (values <= 30).mean(), early / max(1, len(values))]
    return ["not within 30" if median > 30 else f"**{median:g}**", *map(percent, shares)]


TABLES = {"quiet": quiet, "drops": drops}

if __name__ == "__main__":
    main()
