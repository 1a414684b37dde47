"""Compare several runs over the rows that all of them have scored."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from metric_core.columns import RETRIEVED_CONTEXTS
from metric_core.errors import ConfigError
from metric_core.records import Direction, Score
from metric_core.statistics.best_of_many import Ranking, RunValues, rank_runs
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.missing_scores import find_missing_scores
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.resampling import LEVEL, SEED
from tasks.comparison.run_differences import find_differences
from tasks.comparison.run_pair import Matching, RunPair, RunRows
from tasks.findings.table import find_in
from tasks.record.run_record import MetricRecord
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_grouping import ROW_ID
from tasks.runtime.wording import quote_names, shorten_path

CONTEXT_WORDS = "words of context"
_COSTS = "figures"
"""Family of the metrics that are costs of the system, such as its latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOfMany:
    """A run among several.

    Args:
        name: Name of its folder, or the path if another run's folder has the same name.
        costs: Cost of a question to the system, on average over the rows that all runs have: words of context, and
            figures such as the latency.
        questions: Number of distinct questions to the judge.
        asked: Number of these questions whose answers were not cached.
        tokens: Number of tokens of the questions that were asked and of their answers.
        seconds: Duration of the evaluation; None if it is not known.
        diagnosis: Class of the diagnosis -> number of rows; empty without a diagnosis.
    """

    name: str
    folder: str
    costs: Mapping[str, float]
    questions: int
    asked: int
    tokens: int
    seconds: float | None
    diagnosis: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Losses:
    """The rows of a run against those of the leader.

    Args:
        worse: Names of the rows that score worse, the largest losses first.
        better: Number of rows that score better.
    """

    worse: tuple[str, ...]
    better: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMetric:
    """The runs ranked by a metric.

    Args:
        scale: Scale of the rows, for a metric whose rows have different scales.
        losses: Losses of each run, in the order of the runs.
        unscored: Number of rows that each run lacks a score for, and some other run does not.
        kept: Places of runs that may be the best only because scores that are missing could make up for their distance.
    """

    metric: str
    scale: str | None
    direction: Direction
    ranking: Ranking
    losses: tuple[Losses, ...]
    unscored: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def best(self) -> tuple[int, ...]:
        """Places of the runs that may be the best, in descending order of their means."""
        return tuple(place for place in self.order if self.ranking.runs[place].may_be_best)

    @property
    def order(self) -> tuple[int, ...]:
        """Places of the runs in descending order of their means."""
        runs = self.ranking.runs
        return tuple(sorted(range(len(runs)), key=lambda place: runs[place].behind))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyRuns:
    """Several runs compared.

    Args:
        metrics: Rankings; the first one is by the metric that the user named first, or that the runs name first.
        rows: Number of rows that all runs have.
        not_alike: Reasons why the runs are not like for like.
    """

    runs: tuple[OneOfMany, ...]
    metrics: tuple[RankedMetric, ...]
    rows: int
    not_alike: tuple[str, ...]
    by: str | None
    seed: int

    def front(self, cost: str) -> tuple[int, ...]:
        """Return the places of the runs that no run beats in both the first metric's mean and a cost, cheapest first.

        Args:
            cost: Name of a cost that all runs have.
        """
        found: list[int] = []
        runs = self.metrics[0].ranking.runs
        for place in sorted(range(len(runs)), key=lambda each: (self.runs[each].costs[cost], runs[each].behind)):
            if not found or runs[place].behind < runs[found[-1]].behind:
                found.append(place)
        return tuple(found)

    @property
    def costs(self) -> tuple[str, ...]:
        """Names of the costs that all runs have."""
        return tuple(name for name in self.runs[0].costs if all(name in run.costs for run in self.runs))


def compare_many(
    folders: Sequence[Path], matching: Matching, metrics: Sequence[str] = (), seed: int = SEED
) -> ManyRuns:
    """Compare runs over the rows that all of them have.

    Args:
        folders: Run folders, at least two.
        matching: Columns by which rows are matched and grouped; groups and weights are by default those of the first
            run's configuration.
        metrics: Keys of the metrics to rank by; by default all that have a direction, without costs.

    Raises:
        RunFolderError: A folder does not hold a finished run.
        ConfigError: Rows cannot be matched or grouped, or the runs have no row or no such metric in common.
    """
    finished = [FinishedRun(folder) for folder in folders]
    config = finished[0].config
    matching = replace(
        matching,
        by=matching.by or config.get("by"),
        weights=config.get("weights"),
        traffic=config.get("traffic") or {},
    )
    others = replace(matching, by=None, weights=None)
    first, *rest = finished
    rows = [RunRows.from_run(first, matching), *(RunRows.from_run(run, others, is_baseline=True) for run in rest)]
    common = set.intersection(*(set(each.keys.values()) for each in rows))
    if not common:
        raise ConfigError(
            f"the {len(rows)} runs have no row in common: no {matching.match or 'id'} is in all. Rows without an id "
            "get one from their content, so a row with another answer is another row: --match user_input."
        )
    cells = [each.cells() for each in rows]
    shared, named = _shared_metrics(finished), name_runs(finished)
    costs = [key for key, metric in shared.items() if metric.family == _COSTS]
    wanted = _choose_metrics(shared, metrics or [key for key in shared if key not in costs])
    names = [(metric, scale) for metric in wanted for scale in _scales([run.get(metric.key, {}) for run in cells])]
    error = (1 - LEVEL) / max(len(names), 1)
    ranked = [
        _rank(metric, scale, [run.get(metric.key, {}) for run in cells], rows[0], (error, seed))
        for metric, scale in names
    ]
    if not ranked:
        raise ConfigError("no row is scored in all runs by a metric with a direction, so there is nothing to rank by")
    reasons = (
        reason
        for name, each in zip(named[1:], rows[1:], strict=True)
        for reason in find_differences(RunPair(each, rows[0])).describe_serious(named[0], name)
    )
    spent = [_read_costs(*each, common, costs) for each in zip(rows, cells, strict=True)]
    return ManyRuns(
        runs=tuple(_describe_runs(rows, named, spent)),
        metrics=tuple(ranked),
        rows=len(common),
        not_alike=tuple(dict.fromkeys(reasons)),
        by=matching.by,
        seed=seed,
    )


def name_runs(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the name of each run's folder, or its path if another run's folder has the same name."""
    counts = Counter(run.folder.name for run in runs)
    return [run.folder.name if counts[run.folder.name] == 1 else shorten_path(run.folder) for run in runs]


def _shared_metrics(runs: Sequence[FinishedRun]) -> dict[str, MetricRecord]:
    """Return the metrics of all runs that have a direction, in the order of the first run."""
    keys = set.intersection(*({metric.key for metric in run.record.metrics} for run in runs))
    metrics = (metric for metric in runs[0].record.metrics if metric.direction is not Direction.NEITHER)
    return {metric.key: metric for metric in metrics if metric.key in keys}


def _choose_metrics(found: Mapping[str, MetricRecord], wanted: Sequence[str]) -> list[MetricRecord]:
    if unknown := [name for name in wanted if name not in found]:
        raise ConfigError(f"the runs cannot be ranked by {quote_names(unknown)}: all have {quote_names(found)}")
    return [found[name] for name in wanted]


def _scales(runs: Sequence[Mapping[str, Score]]) -> list[str | None]:
    """Return the scales of the rows that all runs have scored."""
    first, *others = runs
    scales = {
        cell.label
        for row, cell in first.items()
        if cell.value is not None and all(row in run and run[row].value is not None for run in others)
    }
    return sorted(scales, key=str)


def _rank(
    metric: MetricRecord,
    scale: str | None,
    cells: Sequence[Mapping[str, Score]],
    first: RunRows,
    chances: tuple[float, int],
) -> RankedMetric:
    """Rank the runs by a metric.

    Args:
        cells: Row -> cell, of each run.
        first: Rows of the first run, which have the groups and weights.
        chances: Chance of an error, and seed.
    """
    is_lower = metric.direction is Direction.LOWER
    scored = [{row: cell.value for row, cell in run.items() if cell.value is not None} for run in cells]
    of_scale = (row for row, cell in cells[0].items() if cell.label == scale)
    in_all = [row for row in of_scale if all(row in run for run in scored)]
    names = sorted(row for row in in_all if all(run[row].label == scale for run in cells))
    columns = [
        ScoreColumns(
            metric=metric.key,
            direction=metric.direction,
            a=cells[0],
            b=run,
            groups=first.groups or None,
            bounds=metric.bounds,
            weights=first.weights,
        )
        for run in cells
    ]
    values = np.array([[run[name] for run in scored] for name in names], dtype=np.float64).reshape(-1, len(cells))
    compared = RunValues(
        values=values,
        bounds=Bounds.of_metric(metric.bounds, scale),
        lower_is_better=is_lower,
        groups=columns[0].groups_of(names),
        weights=columns[0].weights_of(names),
    )
    ranking = rank_runs(compared, *chances)
    kept = []
    for place, run in enumerate(ranking.runs):
        if run.beaten_by is not None:
            pair = replace(columns[place], a=cells[run.beaten_by])
            if _may_hide_the_best(pair, scale, chances[1]):
                kept.append(place)
    runs = tuple(
        replace(run, may_be_best=True, beaten_by=None) if place in kept else run
        for place, run in enumerate(ranking.runs)
    )
    lost = (-1 if is_lower else 1) * (values[:, [ranking.leader]] - values)
    everywhere = set.intersection(*(set(run) for run in cells))
    anywhere = everywhere & set().union(*scored)
    return RankedMetric(
        metric=metric.key,
        scale=scale,
        direction=metric.direction,
        ranking=replace(ranking, runs=runs),
        losses=tuple(_losses(names, loss.tolist()) for loss in lost.T),
        unscored=tuple(len(anywhere - set(run)) for run in scored),
        kept=tuple(kept),
    )


def _may_hide_the_best(pair: ScoreColumns, scale: str | None, seed: int) -> bool:
    """Return whether scores that one of two runs lacks could make up for the distance of the second run."""
    paired = pair_scores(pair)
    found = (find_missing_scores(pair, pairs, paired.counts, seed) for pairs in paired.pairs if pairs.scale == scale)
    return any(missing is not None and missing.can_explain() for missing in found)


def _losses(names: Sequence[str], lost: Sequence[float]) -> Losses:
    worse = sorted((-loss, name) for name, loss in zip(names, lost, strict=True) if loss > 0)
    return Losses(tuple(name for _, name in worse), sum(loss < 0 for loss in lost))


def _describe_runs(
    rows: Sequence[RunRows], names: Sequence[str], costs: Sequence[Mapping[str, float]]
) -> Iterable[OneOfMany]:
    summaries = [each.run.summary for each in rows]
    drawn = [finding.history(summaries) for finding in find_in(summaries) if finding.history is not None]
    classes: Mapping[str, Sequence[int | None]] = next((each["diagnosis"] for each in drawn if "diagnosis" in each), {})
    for place, each in enumerate(rows):
        usage = each.run.record.usage
        yield OneOfMany(
            name=names[place],
            folder=str(each.run.folder),
            costs=costs[place],
            questions=usage.questions,
            asked=usage.questions - usage.stored,
            tokens=usage.prompt_tokens + usage.output_tokens,
            seconds=each.run.record.seconds,
            diagnosis={kind: counts[place] or 0 for kind, counts in classes.items()},
        )


def _read_costs(
    rows: RunRows, cells: Mapping[str, Mapping[str, Score]], common: set[str], figures: Sequence[str]
) -> dict[str, float]:
    """Return what the system spends on a question of those that all runs have.

    Args:
        figures: Keys of the metrics that are costs.
    """
    found: dict[str, list[float]] = {CONTEXT_WORDS: []}
    for shard in rows.samples():
        for name, texts in zip(shard[ROW_ID].to_pylist(), shard[RETRIEVED_CONTEXTS].to_pylist(), strict=True):
            if name in common and texts is not None:
                found[CONTEXT_WORDS].append(sum(len(text.split()) for text in texts if text))
    for key in figures:
        found[key] = [cell.value for row, cell in cells[key].items() if row in common and cell.value is not None]
    return {name: sum(values) / len(values) for name, values in found.items() if values}
