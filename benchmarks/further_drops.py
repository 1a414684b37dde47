"""Measure alarms about further drops in simulated nights: how often they are false, and how soon they report one.

    PYTHONPATH=. python benchmarks/further_drops.py [--years 200] [--write]

The world is that of `benchmarks/nights.py`. A drop comes in the third or fourth week, is reported, and stays for the
rest of the year. Where nothing else happens, every further alarm is false; in as many other years as much is lost again
two weeks later. `--write` also puts the table into `benchmarks/results/alarms.md`. Takes half an hour on one core.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.nights import KINDS, METRICS, YEAR, Drift, MonitoredYear, Simulation, World, percent
from benchmarks.results_tables import publish
from metric_core.statistics.alarms import (
    RUNS_ADDED,
    SHARE_OF_FURTHER,
    Alarm,
    find_raised,
    shares_of,
    sum_evidence,
)
from metric_core.statistics.further_drops import RUNS_COMPARED, update_further_alarms
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_evidence import log_e_values
from metric_core.statistics.run_panel import Stream

BEGIN, END = "<!-- begin: benchmarks/further_drops.py -->", "<!-- end of further drops -->"


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
        year: All nights.
        alarm: Alarm about the metric.
        told: Index of the night of this alarm.
    """

    year: MonitoredYear
    alarm: Alarm
    told: int

    @property
    def stream(self) -> Stream:
        """The metric."""
        return self.alarm.stream

    def find_nights(self) -> Iterator[int]:
        """Yield the indices of the nights on which a further alarm is raised, if no earlier one is open."""
        # Noise that rows share only lowers evidence.
        return filter(self._is_raised, self._raised_without_noise())

    def _raised_without_noise(self) -> Iterator[int]:
        panel = self.year.panel
        share = float(shares_of(panel.streams)[panel.streams.index(self.stream)])
        error = self.year.settings.error * SHARE_OF_FURTHER * share
        part, last = panel.only([self.stream]), len(panel.runs)
        numbers = self.year.settings.weights(range(1, last + 1))
        # The first nights after an alarm are compared with the few before them, and the others with three.
        for nights in range(1, min(RUNS_COMPARED, last - 1 - self.told) + 1):
            start = self.told + nights
            until = start + 1 if nights < RUNS_COMPARED else last
            later = part.select(range(start, until)).compared_with(part.select(range(self.told, start)))
            place = [later.streams.index(self.stream)]
            means, weights = later.means()[:, place], numbers[start:until]
            log_e = log_e_values(later, range(len(later.runs)))[:, place]
            for night in range(len(means)):
                seen = slice(max(0, night + 1 - RUNS_ADDED), night + 1)
                every = np.ones(log_e[seen].shape, dtype=bool)
                if find_raised(sum_evidence(log_e[seen], every, means[seen], weights[seen]), np.ones(1), error)[0]:
                    yield start + night

    def _is_raised(self, night: int) -> bool:
        """Return whether the product raises an alarm on a night."""
        panel, streams = self.year.panel, self.year.panel.streams
        is_open = np.zeros((night, len(streams)), dtype=bool)
        is_open[self.told :, streams.index(self.stream)] = True
        known, references = self.year.until(night, is_open), panel.select(range(self.told, night))
        return bool(update_further_alarms(known, references, night + 1, known=[self.alarm]))


def follow(simulation: Simulation) -> list[Followed]:
    """Return the metrics that have an alarm because of the first drop, within thirty nights."""
    drift = simulation.drift
    assert drift is not None
    until = min(simulation.onset + 30, getattr(simulation, "again", 10 * YEAR))
    watched = MonitoredYear(simulation.panel.select(np.flatnonzero(simulation.days_run < until).tolist()))
    year, found = MonitoredYear(simulation.panel), []
    for metric in drift.metrics:
        stream = Stream(METRICS[metric])
        told = np.flatnonzero(watched.raised[:, watched.panel.streams.index(stream)])
        if len(told):
            [alarm] = [alarm for alarm in watched.alarms(int(told[0])) if alarm.stream == stream]
            found.append(Followed(year, replace(alarm, is_new=False), int(told[0])))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--years", type=int, default=200, help="years of each line")
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/results/alarms.md")
    options = parser.parse_args()
    publish(further_drops(options.years), BEGIN, END, write=options.write)


LINES = (
    (300, "", 0.2, 0.1),
    (300, "", 0.5, 0.15),
    (300, "", 0.2, 0.05),
    (500, "", 0.2, 0.05),
    (500, "", 0.2, 0.1),
    (100, "", 0.2, 0.2),
    (500, "1 to 9", 0.2, 0.2),
    (500, "lognormal", 0.2, 0.2),
    (500, "one of 60 %", 0.2, 0.2),
)
"""Rows, groups, share of the answers that change, and drop of each line."""


def further_drops(years: int) -> Iterator[str]:
    """Yield a table of false further alarms, and of how soon further drops are reported."""
    yield (
        "Two metrics drop once, in the fourth week. False: years with a further alarm, although they stay where they "
        "are. The other columns are about years with another drop of the same size two weeks after the "
        "first; nights count from its first one.\n\n"
        "| rows | groups | answers that change | drop | metrics with an alarm about the first drop | false "
        f"| raised after, median nights | within 5 | within 30 | raised before it came |\n|{' --- |' * 10}\n"
    )
    for rows, groups, changing, size in LINES:
        world, quiet, nights, early = World("", rows, changing, groups=groups), [], [], 0
        for seed in range(years):
            onset, drift = 20 + seed % 7, Drift(KINDS[seed % 3], size)
            followed = follow(Simulation(world, seed, YEAR, drift, onset))
            quiet += [any(any(True for _ in metric.find_nights()) for metric in followed)] if followed else []
            again = onset + 14
            simulation = TwoDrops(world, seed, again + 30, drift, onset, again)
            for metric in follow(simulation):
                is_early, told = False, 99
                for night in metric.find_nights():
                    day = int(simulation.days_run[night])
                    is_early |= day < again
                    if day >= again:
                        told = day - again + 1
                        break
                early += is_early
                nights.append(told)
        start = f"| {rows} | {groups or '-'} | {changing * 100:.0f} % | {size} | {len(nights)}"
        false = percent(np.mean(quiet)) if quiet else "-"
        yield f"{start} | **{false}** | {' | '.join(_describe(nights, early))} |\n"
    yield "\n"


def _describe(nights: Sequence[int], early: int) -> list[str]:
    values = np.array(nights or [99])
    median = float(np.median(values))
    shares = [(values <= 5).mean(), (values <= 30).mean(), early / max(1, len(values))]
    return ["not within 30" if median > 30 else f"**{median:g}**", *map(percent, shares)]


if __name__ == "__main__":
    main()
