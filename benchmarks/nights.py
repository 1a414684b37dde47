"""Measure alarms in simulated years of nights: how often they are false, how soon they report a drop.

    python -m benchmarks.nights [--years 200] [--only TEXT] [--write]

A year is an evaluation of a few hundred questions every night, compared with one accepted run. The simulated system
gives some questions another answer every night, and so did the accepted run. A scripted judge knows which claims are
true and errs at fixed rates, always in the same way for the same text; some texts are judged again and get another
verdict. Scores are mostly 1, four metrics are correlated through the quality of the answer, a fifth needs no judge.
Rows leave for a while or for good, cells fail, nights are skipped. `--write` also puts the tables into
`benchmarks/results/alarms.md`. Two hundred years a line take an hour on one core, half of it
the table of noise that rows share.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.results_tables import publish
from metric_core.statistics import run_evidence
from metric_core.statistics.alarms import (
    RUNS_ADDED,
    RUNS_READ,
    Alarm,
    AlarmSettings,
    add_e_values,
    find_raised,
    shares_of,
    sum_evidence,
    update_alarms,
)
from metric_core.statistics.betting import log_e_values
from metric_core.statistics.missing_scores import are_selective
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import FIRST_RUNS, Panel, SliceRows, find_large_groups, wide
from metric_core.statistics.shared_noise import limit_deviations, limit_shared_noise
from metric_core.statistics.slices import Slice

BEGIN, END = "<!-- begin: benchmarks/nights.py -->", "<!-- end of nights -->"

METRICS = ("faithfulness", "context_recall", "context_precision", "answer_correctness", "answer_similarity")
JUDGED = 4
"""Number of metrics that the judge scores; the last one compares embeddings."""
OFFSETS = np.array([0.9, 0.5, 0.6, -0.4])
"""Log-odds that the claims of a metric are easier than the average claim."""
LANGUAGES = ("en", "de", "fr", "es", "pl")
SIZES = (0.45, 0.25, 0.15, 0.1, 0.05)
VARIANTS, CLAIMS = 5, 6
YEAR = 365
START = datetime(2025, 1, 1, 3, tzinfo=UTC)

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """A system, its data and its judge.

    Args:
        name: Name in the tables.
        rows: Number of questions.
        changing: Share of the answers that change from night to night.
        days_kept: Mean number of days that an answer is kept before it is drawn again; 1 for new draws every night.
        groups: Sizes of the groups of questions about the same document, whose answers change together; empty if
            every question has its own document.
        runs_per_day: Number of runs per day.
        candidates: Number of first runs, the best of which is accepted as the baseline; 1 for an honest choice.
        shared: Standard deviation of what all scores of a night by the judge share.
    """

    name: str
    rows: int = 500
    changing: float = 0.2
    days_kept: int = 1
    groups: str = ""
    runs_per_day: int = 1
    candidates: int = 1
    shared: float = 0.0


@dataclass(frozen=True)
class Drift:
    """Something that becomes worse on one night and stays so.

    Args:
        kind: "lost": some answers are lost for good; "anywhere": every answer of every night may be lost; "half": twice
            as many lose half of their score.
        size: Expected drop of the mean of the metrics that drop.
        metrics: Indices of the metrics that drop.
        language: Language whose answers drop, by `size` within it; None for all.
    """

    kind: str
    size: float = 0.05
    metrics: tuple[int, ...] = (0, 3)
    language: int | None = None


@dataclass(frozen=True)
class Judge:
    """A scripted judge, which knows the truth and errs at fixed rates, in the same way for the same text."""

    right_if_true: float
    right_if_false: float
    seed: int

    def verdicts(self, truths: Bools, world_seed: int) -> Bools:
        """Return verdicts on claims."""
        luck = np.random.default_rng([self.seed, world_seed]).random(truths.shape)
        return np.where(truths, luck < self.right_if_true, luck > self.right_if_false)


JUDGE, AGAIN = Judge(0.97, 0.9, 1), Judge(0.97, 0.9, 2)
"""The judge, and the same judge asked again at another time."""


@dataclass(frozen=True)
class Simulation:
    """A year, or a part of it, of nights of a world.

    Args:
        world: The world.
        seed: Seed of everything random.
        days: Number of days.
        drift: Drift; None if nothing changes.
        onset: First day of the drift.
    """

    world: World
    seed: int
    days: int = YEAR
    drift: Drift | None = None
    onset: int = 0

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.world.rows])

    @cached_property
    def languages(self) -> Ints:
        """The language of each row."""
        bounds = np.round(np.cumsum(SIZES) * self.world.rows).astype(int)
        return np.random.default_rng([self.seed, 5]).permutation(
            np.searchsorted(bounds, np.arange(self.world.rows), "right")
        )

    @cached_property
    def groups(self) -> Ints | None:
        """The document of each row; None if every row has its own."""
        rows, generator = self.world.rows, np.random.default_rng([self.seed, 7])
        if not self.world.groups:
            return None
        sizes = {
            "1 to 5": generator.integers(1, 6, rows),
            "1 to 9": generator.integers(1, 10, rows),
            "lognormal": np.ceil(generator.lognormal(1.0, 1.2, rows)).astype(np.int64),
            "one of 60 %": np.concatenate([[round(0.6 * rows)], np.ones(rows, dtype=np.int64)]),
        }[self.world.groups]
        return np.repeat(np.arange(len(sizes)), sizes)[:rows]

    @cached_property
    def days_run(self) -> Ints:
        """Day of each run since the baseline's, which was on day 0; some nights are skipped."""
        generator = np.random.default_rng([self.seed, 11])
        days = np.arange(1, self.days + 1)
        outage = generator.integers(1, YEAR)
        kept = (generator.random(self.days) > 0.03) & ~((days > outage) & (days <= outage + 4))
        return np.repeat(days[kept], self.world.runs_per_day)

    def population(self, rows: int) -> tuple[Bools, Bools, Floats]:
        """Draw the truth of claims (rows x variants x metrics x claims), which exist, and similarities."""
        generator = self._generator
        difficulty = generator.normal(1.9, 0.9, rows)
        variant = generator.normal(0, 0.8, (rows, VARIANTS))
        variant[:, 0] = np.abs(variant[:, 0]) * 0.3
        if self.groups is not None and rows == self.world.rows:
            difficulty = (difficulty + difficulty[self.groups]) / 2
        level = difficulty[:, None] + variant
        chance = 1 / (1 + np.exp(-(level[..., None] + OFFSETS)))
        truths = generator.random((*chance.shape, CLAIMS)) < chance[..., None]
        exists = np.arange(CLAIMS) < generator.integers(2, CLAIMS + 1, rows)[:, None]
        similarity = np.clip(0.75 + 0.2 / (1 + np.exp(-level)) + generator.normal(0, 0.04, level.shape), 0, 1)
        return truths, exists, similarity

    def score(self, population: tuple[Bools, Bools, Floats], judge: Judge) -> Floats:
        """Return scores by a judge, as rows x variants x metrics."""
        truths, exists, similarity = population
        verdicts = judge.verdicts(truths, self.seed) & exists[:, None, None]
        shares = verdicts.sum(axis=-1) / exists.sum(axis=-1)[:, None, None]
        return np.concatenate([shares, similarity[..., None]], axis=-1)

    @cached_property
    def _people(self) -> tuple[Bools, Bools, Floats]:
        return self.population(self.world.rows)

    @cached_property
    def _chances(self) -> Floats:
        """Chance of each answer of each row; some rows are stable, others change often."""
        changing = np.random.default_rng([self.seed, 13]).beta(1, 3, self.world.rows) * self.world.changing / 0.25
        changing = np.minimum(changing, 0.95)
        return np.concatenate([1 - changing[:, None], np.repeat(changing[:, None] / (VARIANTS - 1), 4, 1)], axis=1)

    def _draw_answers(self, runs: int) -> Ints:
        """Draw the answer of each run and row."""
        world, generator = self.world, self._generator
        luck = generator.random((runs, world.rows))
        if self.groups is not None:
            together = generator.random((runs, world.rows)) < 0.6
            luck = np.where(together, luck[:, self.groups], luck)
        if world.days_kept > 1:
            is_new = generator.random((runs, world.rows)) < 1 / world.days_kept
            is_new[0] = True
            drawn = np.maximum.accumulate(np.where(is_new, np.arange(runs)[:, None], 0), axis=0)
            luck = np.take_along_axis(luck, drawn, axis=0)
        answers: Ints = (luck[..., None] > self._chances.cumsum(axis=1)).sum(axis=-1).clip(0, VARIANTS - 1)
        return answers

    @cached_property
    def scores(self) -> Floats:
        """Scores of the baseline and of all runs, as runs x rows x metrics; NaN where there is none."""
        runs = len(self.days_run) + self.world.candidates
        answers = self._draw_answers(runs)
        generator = self._generator
        usual, again = self.score(self._people, JUDGE), self.score(self._people, AGAIN)
        rows = np.arange(self.world.rows)
        scores = usual[rows, answers]
        is_again = generator.random(scores.shape) < 0.02
        scores[is_again] = again[rows, answers][is_again]
        if self.drift is not None:
            is_late = np.concatenate([np.zeros(self.world.candidates, bool), self.days_run >= self.onset])
            scores[is_late] = self._worsen(scores[is_late], usual)
        if self.world.candidates > 1:
            best = np.argmax(scores[: self.world.candidates, :, :JUDGED].mean(axis=(1, 2)))
            scores = np.concatenate([scores[best : best + 1], scores[self.world.candidates :]])
        return self._lose(scores)

    def _worsen(self, scores: Floats, usual: Floats) -> Floats:
        drift, generator = self.drift, np.random.default_rng([self.seed, 17])
        if drift is None:
            return scores
        for metric in drift.metrics:
            share, affected = self._share_lost(metric, usual), self._affected
            nights = len(scores) if drift.kind == "anywhere" else 1
            lost = affected & (generator.random((nights, self.world.rows)) < share)
            self.drops[metric] = self._expected_drop(metric, usual, lost)
            kept = 0.5 if drift.kind == "half" else 0.0
            scores[:, :, metric] = np.where(lost, kept * scores[:, :, metric], scores[:, :, metric])
        return scores

    @cached_property
    def drops(self) -> dict[int, float]:
        """The true drop of each metric that dropped, in the expected score of these rows."""
        return {}

    @property
    def _affected(self) -> Bools:
        language = self.drift.language if self.drift is not None else None
        return self.languages == language if language is not None else np.ones(self.world.rows, dtype=bool)

    def _expected(self, metric: int, usual: Floats) -> Floats:
        expected: Floats = (usual[:, :, metric] * self._chances).sum(axis=1)
        return expected

    def _share_lost(self, metric: int, usual: Floats) -> float:
        drift = self.drift or Drift("lost")
        mean = float(self._expected(metric, usual)[self._affected].mean())
        return drift.size / mean * (2 if drift.kind == "half" else 1)

    def _expected_drop(self, metric: int, usual: Floats, lost: Bools) -> float:
        drift = self.drift or Drift("lost")
        expected = self._expected(metric, usual)[self._affected]
        if drift.kind == "anywhere":
            return float((self._share_lost(metric, usual) * expected).mean())
        return float(((0.5 if drift.kind == "half" else 1.0) * lost[0, self._affected] * expected).mean())

    def _lose(self, scores: Floats) -> Floats:
        """Remove cells that failed and rows that are gone."""
        generator = np.random.default_rng([self.seed, 19])
        runs, rows, _ = scores.shape
        scores = np.where(generator.random(scores.shape) < 0.01, np.nan, scores)
        flaky = np.flatnonzero(generator.random(runs) < 0.03)
        low = scores[flaky] < 0.6
        scores[flaky] = np.where(low & (generator.random(low.shape) < 0.2), np.nan, scores[flaky])
        leaves = np.where(generator.random(rows) < 0.1, generator.integers(1, YEAR, rows), 10 * YEAR)
        returns = np.where(generator.random(rows) < 0.5, leaves + generator.integers(3, 60, rows), 10 * YEAR)
        day = np.concatenate([[0], self.days_run])[:, None]
        return np.where(((day >= leaves) & (day < returns))[..., None], np.nan, scores)

    @cached_property
    def panel(self) -> Panel:
        """The improvements of all runs."""
        before, after = self.scores[0], self.scores[1:]
        favorable = np.full(after.shape, np.nan)
        # A row that is gone lacks all metrics: it is not a row of both runs.
        is_there = ~np.isnan(after).all(axis=-1)
        for night, metric in np.ndindex(len(after), len(METRICS)):
            old, new = np.where(is_there[night], before[:, metric], np.nan), after[night, :, metric]
            if are_selective(old, new, self.groups):
                best = np.where(np.isnan(new), 1 - old, np.where(np.isnan(old), new, np.nan))
                favorable[night, :, metric] = best
        per_day = self.world.runs_per_day
        starts = [
            START + timedelta(days=int(day), hours=24 // per_day * (run % per_day))
            for run, day in enumerate(self.days_run)
        ]
        slices = [SliceRows(Slice("language", name), self.languages == i) for i, name in enumerate(LANGUAGES)]
        if self.groups is not None:
            names = {str(row): str(group) for row, group in enumerate(self.groups)}
            slices += find_large_groups("document", names, [*names])
        panel = Panel(
            METRICS,
            dict.fromkeys(METRICS, 1.0),
            tuple(starts),
            np.clip(after - before + self._shared_by_rows, -1.0, 1.0),
            favorable,
            self.groups,
            tuple(slices),
        )
        return panel.with_first_runs(starts[FIRST_RUNS - 2]) if len(starts) >= FIRST_RUNS else panel

    @property
    def _shared_by_rows(self) -> Floats:
        """Noise that all rows of a night share, less that of the baseline, as nights x 1 x metrics."""
        generator = np.random.default_rng([self.seed, 29])
        nights = generator.normal(0, self.world.shared, len(self.days_run) + 1)
        return (nights[1:] - nights[0])[:, None, None] * (np.arange(len(METRICS)) < JUDGED)


NIGHTLY = (
    World("20 % of the answers change every night"),
    World("half of the answers change every night", changing=0.5),
    World("an answer is kept for a month on average", days_kept=30),
    World("one to five questions per document, which change together", groups="1 to 5"),
    World("one to nine", groups="1 to 9"),
    World("documents of lognormal sizes", groups="lognormal"),
    World("one document has 60 % of the questions", groups="one of 60 %"),
    World("60 rows", rows=60),
)
OTHERS = (
    World("a run every four hours", runs_per_day=6),
    World("the best of ten runs was accepted", candidates=10),
)
KINDS = ("lost", "anywhere", "half")
SHARED = (
    *((500, shared, before) for shared in (0.0, 0.01, 0.02, 0.03) for before in (0, 60)),
    *((300, 0.0, before) for before in (0, 20, 60)),
    *((2000, shared, 0) for shared in (0.0, 0.01, 0.02)),
)
"""Rows, standard deviation of shared noise, and nights before, of the lines about shared noise."""


@dataclass
class MonitoredYear:
    """A year whose nights were watched one after the other.

    Args:
        panel: Improvements of all nights.
        settings: Settings of the alarms.
        earlier: Steps of each metric in nights before the baseline.
    """

    panel: Panel
    settings: AlarmSettings = field(default_factory=AlarmSettings)
    earlier: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)

    @cached_property
    def log_e_values(self) -> Floats:
        """Logarithm of the e-value of each night and stream."""
        return run_evidence.log_e_values(self.panel, range(len(self.panel.runs)))

    @cached_property
    def means(self) -> Floats:
        """Mean improvement of each night and stream."""
        return self.panel.means()

    @cached_property
    def steps(self) -> list[dict[str, tuple[float, float]]]:
        """The step of each night and metric, as its outcome keeps it."""
        return [self.panel.select(range(max(0, night - 1), night + 1)).last_step() for night in range(len(self.means))]

    @cached_property
    def raised_without_noise(self) -> Bools:
        """True for the streams that have an alarm on a night, as nights x streams, if rows share no noise."""
        raised = np.zeros(self.means.shape, dtype=bool)
        weights = self.settings.weights(range(1, len(raised) + 1))
        # No sum over some nights is larger than that over all.
        if add_e_values(self.log_e_values, weights[:, None]).max() >= 1 / self.settings.error:
            for night in range(len(raised)):
                raised[night] = self._find_raised(night, np.ones((1, 1), dtype=bool))
        return raised

    @cached_property
    def raised(self) -> Bools:
        """True for the streams that have an alarm on a night, as nights x streams, if no earlier alarm is open."""
        raised = self.raised_without_noise.copy()
        deviations = limit_deviations(self.settings.error, self.settings.runs)
        # Noise only lowers evidence.
        for night in map(int, np.flatnonzero(raised.any(axis=1))):
            known = self.until(night, raised)
            last = range(max(0, len(known.runs) - RUNS_ADDED), len(known.runs))
            raised[night] = self._find_raised(night, run_evidence.exceeds_noise(known, last, deviations))
        return raised

    def _find_raised(self, night: int, beyond: Bools) -> Bools:
        seen = slice(max(0, night + 1 - RUNS_ADDED), night + 1)
        weights = self.settings.weights(range(1, len(self.means) + 1))[seen]
        evidence = sum_evidence(self.log_e_values[seen], beyond, self.means[seen], weights)
        return find_raised(evidence, shares_of(self.panel.streams), self.settings.error)

    def until(self, night: int, raised: Bools) -> Panel:
        """Return the panel as it is after a night, with the noise that the outcomes before it do not refute.

        Args:
            raised: Nights x streams that have an alarm, whose steps are not noise.
        """
        steps: dict[str, list[tuple[float, float]]] = {
            metric: [*self.earlier.get(metric, ())] for metric in self.panel.metrics
        }
        for each, is_raised in zip(self.steps[:night], raised[:night], strict=True):
            worse = {self.panel.streams[place].metric for place in np.flatnonzero(is_raised)}
            for metric in each.keys() - worse:
                steps[metric].append(each[metric])
        noise = {metric: limit_shared_noise(steps[metric]) for metric in self.panel.metrics}
        return replace(self.panel.select(range(max(0, night + 1 - RUNS_READ), night + 1)), shared_noise=noise)

    def alarms(self, night: int) -> list[Alarm]:
        """Return the alarms of a night as the product does, from the last nights."""
        alarms = update_alarms(self.until(night, self.raised), night + 1, self.settings)
        assert {self.panel.streams.index(alarm.stream) for alarm in alarms} == {*np.flatnonzero(self.raised[night])}
        return alarms


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--years", type=int, default=200, help="years of each line")
    parser.add_argument("--only", default="", help="tables whose name contains this text")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/alarms.md")
    options = parser.parse_args()
    parts = (part for name, table in TABLES.items() if options.only in name for part in table(options.years))
    publish(parts, BEGIN, END, write=options.write)


def quiet_years(years: int) -> Iterator[str]:
    """Yield a table of false alarms in years without drift, of alarms and of what is commonly used instead."""
    yield "**False alarms.** Share of years without drift with any alarm, over five metrics.\n\n"
    yield f"| world | years | alarms, five slices as well | {' | '.join(COMMON)} |\n"
    yield f"| --- | --- | --- |{' --- |' * len(COMMON)}\n"
    for world in (*NIGHTLY, *OTHERS):
        yield quiet_line(world, max(1, years // world.runs_per_day))
    yield "\n"


def quiet_line(world: World, years: int) -> str:
    """Return a line about years of a world without drift."""
    found = np.zeros(1 + len(COMMON))
    for seed in range(years):
        watched = MonitoredYear(Simulation(world, seed).panel)
        means = watched.means[:, : len(METRICS)]
        common = [rule(watched.panel.improvements, means) for rule in COMMON.values()]
        found += np.array([bool(watched.raised.any()), *common])
    cells = [f"**{percent(found[0] / years)}**", *(percent(share) for share in found[1:] / years)]
    return f"| {world.name} | {years} | {' | '.join(cells)} |\n"


def _fell_by_two_points(improvements: Floats, means: Floats) -> bool:
    del improvements
    return bool((means < -0.02).any())


def _nightly_test(improvements: Floats, means: Floats) -> bool:
    counts = (~np.isnan(improvements)).sum(axis=1)
    limits = ndtri(0.05 / len(METRICS)) * np.nanstd(improvements, axis=1) / np.sqrt(counts)
    return bool(((means < limits) & (means < 0)).any())


def _rolling_z(improvements: Floats, means: Floats) -> bool:
    del improvements
    past = np.lib.stride_tricks.sliding_window_view(means, 30, axis=0)[:-1]
    return bool((means[30:] < past.mean(axis=-1) - 3 * past.std(axis=-1, ddof=1)).any())


def _multiplied_bets(improvements: Floats, means: Floats) -> bool:
    del means
    money = np.cumsum(log_e_values(wide(improvements)).reshape(len(improvements), -1), axis=0)
    return bool((money >= np.log(len(METRICS) / 0.05)).any())


COMMON: dict[str, Callable[[Floats, Floats], bool]] = {
    "mean 0.02 below the baseline": _fell_by_two_points,
    "z-test every night, 5 %, Bonferroni over metrics": _nightly_test,
    "below the last 30 nights by 3 deviations": _rolling_z,
    "bets multiplied over nights": _multiplied_bets,
}


@dataclass
class Told:
    """The alarm about a drift, if there was one.

    Args:
        nights: Number of nights from the first bad night to the alarm, both included; None if there was none.
        is_other_blamed: True if a metric or slice that did not drop had an alarm on any night.
        days_off: Number of days between the first bad night and the day that the alarm names.
        is_within: True if the true drop lies within the limits that the alarm names.
    """

    nights: int | None
    is_other_blamed: bool
    days_off: int = 0
    is_within: bool = False


def follow(world: World, drift: Drift, seed: int) -> Told:
    """Watch the nights around the onset of a drift, for thirty nights after it."""
    onset = 20 + seed % 7
    simulation = Simulation(world, seed, onset + 30, drift, onset)
    watched = MonitoredYear(simulation.panel)
    names = {METRICS[metric] for metric in drift.metrics}
    part = None if drift.language is None else Slice("language", LANGUAGES[drift.language])
    affected = np.array(
        [stream.metric in names and (part is None or stream.slice in (None, part)) for stream in watched.panel.streams]
    )
    is_late = simulation.days_run >= onset
    told = np.flatnonzero(watched.raised[:, affected].any(axis=1) & is_late)
    other = bool(watched.raised[:, ~affected].any() or watched.raised[~is_late].any())
    if not len(told):
        return Told(None, other)
    night = int(told[0])
    nights = int(simulation.days_run[night]) - onset + 1
    alarms = watched.alarms(night)
    alarm = next((each for each in alarms if each.stream.slice == part), alarms[0])
    metric = METRICS.index(alarm.stream.metric)
    first = int(simulation.days_run[is_late][0])
    drop = simulation.drops.get(metric, np.nan)
    if part is not None and alarm.stream.slice is None:
        drop *= float((simulation.languages == drift.language).mean())
    return Told(
        nights,
        other,
        abs((alarm.since - START).days - first),
        alarm.interval.low - 1e-9 <= drop <= alarm.interval.high + 1e-9,
    )


TOLD = (
    "raised after, median nights | within 5 | within 30 | since right to a night | size within limits "
    "| anything else blamed |\n"
)


def shared_noise(years: int) -> Iterator[str]:
    """Yield a table of nights on which all rows move together."""
    yield (
        "**Noise that all rows of a night share**, by its standard deviation and by the nights that the history had "
        "before. Four of five metrics share it; without slices. A drop of 0.05 in one of them comes after one to two "
        "weeks. Without: alarms that take rows to be independent.\n\n"
        "| rows | its deviation | nights before | years | any false alarm | in the first 30 nights | without "
        f"| drop raised within 5 | within 30 | within 5, without |\n|{' --- |' * 10}\n"
    )
    for rows, shared, before in SHARED:
        world, found = World("", rows, shared=shared), []
        for seed in range(years):
            earlier = _steps_before(world, seed, before)
            quiet = _watch(Simulation(world, seed), earlier)
            onset = 7 + seed % 7
            dropped = Simulation(world, seed, onset + 30, Drift(KINDS[seed % 3], metrics=(3,)), onset)
            year = _watch(dropped, earlier)
            nights, without = (_first_night(dropped, each) for each in (year.raised, year.raised_without_noise))
            false = (quiet.raised.any(), quiet.raised[:30].any(), quiet.raised_without_noise.any())
            found.append([*false, nights <= 5, nights <= 30, without <= 5])
        cells = [percent(share) for share in np.mean(found, axis=0)]
        yield f"| {rows:,} | {shared} | {before} | {years} | **{cells[0]}** | {' | '.join(cells[1:])} |\n"
    yield "\n"


def _watch(simulation: Simulation, earlier: Mapping[str, Sequence[tuple[float, float]]]) -> MonitoredYear:
    return MonitoredYear(replace(simulation.panel, slices=()), earlier=earlier)


def _steps_before(world: World, seed: int, nights: int) -> dict[str, list[tuple[float, float]]]:
    """Return the steps of each metric in some nights before a year."""
    if not nights:
        return {}
    steps = MonitoredYear(Simulation(world, seed + 10_000, nights).panel).steps
    return {metric: [each[metric] for each in steps if metric in each] for metric in METRICS}


def _first_night(simulation: Simulation, raised: Bools) -> int:
    """Return the number of nights from a drop in the fourth metric to the alarm; 99 for none."""
    days = simulation.days_run[raised[:, 3]]
    return next((int(day) - simulation.onset + 1 for day in days if day >= simulation.onset), 99)


def drops(years: int) -> Iterator[str]:
    """Yield a table of how soon drops are reported."""
    yield (
        "**Drops.** A third of the years each: answers lost for good, other answers lost every night, and twice as "
        "many that lose half. Nights count from the first bad one.\n\n"
        f"| rows | groups | answers that change | metrics that drop | drop | years | {TOLD}|{' --- |' * 12}\n"
    )
    lines: tuple[tuple[int, str, float, tuple[int, ...], float], ...] = (
        (500, "", 0.2, (0, 3), 0.05),
        (500, "", 0.2, (3,), 0.05),
        (500, "", 0.5, (0, 3), 0.05),
        (500, "", 0.2, (0, 3), 0.03),
        (500, "", 0.2, (0, 3), 0.1),
        (300, "", 0.2, (3,), 0.05),
        (100, "", 0.2, (3,), 0.1),
        (100, "", 0.2, (0, 3), 0.1),
        (100, "", 0.2, (0, 3), 0.2),
        (2000, "", 0.2, (0, 3), 0.02),
        (500, "1 to 9", 0.2, (3,), 0.1),
        (500, "lognormal", 0.2, (3,), 0.2),
        (500, "one of 60 %", 0.2, (3,), 0.1),
        (100, "one of 60 %", 0.2, (3,), 0.2),
    )
    for rows, groups, changing, metrics, size in lines:
        world = World("", rows, changing, groups=groups)
        every = [follow(world, Drift(KINDS[seed % 3], size, metrics), seed) for seed in range(years)]
        start = f"| {rows:,} | {groups or '-'} | {changing * 100:.0f} % | {len(metrics)} of 5 | {size} | {years} | "
        yield f"{start}{' | '.join(describe(every))} |\n"
    yield "\n"


def schedules(years: int) -> Iterator[str]:
    """Yield a table of how soon drops are reported if runs come more or less often than once a day."""
    yield (
        "**Other intervals.** One metric of five drops after twenty runs; without slices.\n\n"
        f"| schedule | rows | drop | years | raised within 5 runs | within 30 runs |\n|{' --- |' * 6}\n"
    )
    for rows, size in ((300, 0.05), (100, 0.1)):
        for name, runs in (("weekly", 53), ("daily", 366), ("every four hours", 6 * 366)):
            nights = []
            for seed in range(years):
                onset = 20 + seed % 7
                run = Simulation(World("", rows), seed, onset + 30, Drift(KINDS[seed % 3], size, (3,)), onset)
                year = MonitoredYear(replace(run.panel, slices=()), AlarmSettings(runs=runs))
                nights.append(_first_night(run, year.raised))
            cells = [percent(np.mean([night <= most for night in nights])) for most in (5, 30)]
            yield f"| {name} | {rows} | {size} | {years} | {' | '.join(cells)} |\n"
    yield "\n"


def slices(years: int) -> Iterator[str]:
    """Yield a table of drops in one slice."""
    yield (
        "**Drops in one slice** of 500 rows, with five slices. Also blamed: another metric or slice.\n\n"
        f"| rows of the slice | drop in it | years | {TOLD}|{' --- |' * 9}\n"
    )
    for language, size in ((0, 0.1), (1, 0.2), (2, 0.3), (4, 0.6)):
        every = [follow(World(""), Drift(KINDS[seed % 3], size, language=language), seed) for seed in range(years)]
        yield f"| {round(500 * SIZES[language])} | {size} | {years} | {' | '.join(describe(every))} |\n"
    yield "\n"


def describe(every: Sequence[Told]) -> list[str]:
    """Return the cells of a line about drifts."""
    nights = np.array([each.nights or 99 for each in every])
    told = [each for each in every if each.nights is not None]
    median = float(np.median(nights))
    return [
        "not within 30" if median > 30 else f"**{median:g}**",
        percent((nights <= 5).mean()),
        percent((nights <= 30).mean()),
        percent(np.mean([each.days_off <= 1 for each in told])) if told else "-",
        percent(np.mean([each.is_within for each in told])) if told else "-",
        percent(np.mean([each.is_other_blamed for each in every])),
    ]


def percent(share: float | np.floating[Any]) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f} %"


TABLES: dict[str, Callable[[int], Iterator[str]]] = {
    "quiet": quiet_years,
    "drops": drops,
    "schedules": schedules,
    "shared": shared_noise,
    "slices": slices,
}

if __name__ == "__main__":
    main()
