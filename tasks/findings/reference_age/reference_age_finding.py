"""Say where scores are lower, or fell, because references may be too old to be true."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from metric_core.errors import AssayError
from metric_core.records import Direction, Status
from metric_core.stages import Stage
from metric_core.statistics.comparison import ChangeOutcome
from metric_core.statistics.pairs import name_group
from metric_core.statistics.reference_age import AgeEffect, DatedScores, find_age_effects
from tasks.comparison.run_comparison import RunComparison
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.findings.reference_age.reference_dates import (
    COLUMNS,
    about_references,
    date_column,
    format_day,
    read_dates,
)
from tasks.options.metric_settings import MetricSettings
from tasks.record.findings import FindingMap
from tasks.record.run_record import MetricRecord

_QUESTION = "a reference that is no longer true calls a right answer wrong: check the old ones"


class ReferenceAges(FindingMap[AgeEffect]):
    """Metrics with lower scores where references are older."""

    entry: ClassVar[str] = "reference_age"


@dataclass(frozen=True, slots=True)
class ComparedAges:
    """Metrics that are worse, and the more so where references are older."""

    entry: ClassVar[str] = "reference_age"

    effects: dict[str, AgeEffect]

    def to_json(self) -> dict[str, Any]:
        """Return the entry."""
        return {metric: asdict(effect) for metric, effect in self.effects.items()}


def count(rows: WrittenRows) -> Iterator[ReferenceAges]:
    """Yield the metrics whose scores are lower where references are older."""
    requests = about_references(rows.requests)
    dates = read_dates(rows.tables.shards(Stage.SAMPLES, COLUMNS), date_column(rows.record)) if requests else {}
    scores = {}
    for request in requests if dates else ():
        if request.metric.direction is Direction.NEITHER:
            continue
        sign = -1.0 if request.metric.direction is Direction.LOWER else 1.0
        found = {
            row: sign * score.value
            for row, score in rows.folder.read_scores(request.key)
            if row in dates and score.status is Status.SCORED and score.value is not None
        }
        groups, weights = rows.groups, rows.weights
        scores[request.key] = DatedScores(
            np.array([*found.values()]),
            np.array([dates[row] for row in found]),
            None if groups is None else [name_group(row, groups.get(row)) for row in found],
            None if weights is None else np.array([weights[row] for row in found]),
        )
    effects = find_age_effects(scores)
    if effects:
        lower = {each.key for each in requests if each.metric.direction is Direction.LOWER}
        yield ReferenceAges({metric: _restore(each, metric in lower) for metric, each in effects.items()})


def _restore(effect: AgeEffect, is_lower_better: bool) -> AgeEffect:
    """Return an effect with means as the metric has them."""
    return AgeEffect(effect.before, effect.rows, -effect.old, -effect.others) if is_lower_better else effect


def age_lines(run: RunRecords) -> Iterator[str]:
    """Yield a sentence if scores are worse where references are older."""
    found = run.summary.find_all(ReferenceAges)
    if found:
        means = ", ".join(
            f"{metric} {effect.old:.2f} ({effect.rows:,} rows), others {effect.others:.2f}"
            for metric, effect in found.items()
        )
        day = format_day(next(iter(found.values())).before)
        yield f"rows with references from before {day} score worse: {means}; {_QUESTION}"


def how_to_read(run: RunRecords) -> Iterator[str]:
    """Yield the same for the report."""
    yield from (f"{line[0].upper()}{line[1:]}." for line in age_lines(run))


def compare(rows: ComparedRows) -> ComparedAges | None:
    """Return the metrics that are worse where references are older; None without any."""
    run = rows.pair.b.run
    wanted = {metric.key for metric in run.record.metrics if _is_about_references(metric)}
    worse = [each for each in rows.metrics if each.verdict is ChangeOutcome.WORSE and each.metric in wanted]
    dates = read_dates(rows.pair.b.samples(), date_column(run.record)) if worse else {}
    scores = {}
    for each in worse if dates else ():
        pairs, _ = rows.pairs_of(each)
        chosen = [place for place, row in enumerate(pairs.rows) if row in dates]
        scores[each.metric if each.scale is None else f"{each.metric} on {each.scale}"] = DatedScores(
            -pairs.worsening(each.direction)[chosen],
            np.array([dates[pairs.rows[place]] for place in chosen]),
            None if pairs.groups is None else [pairs.groups[place] for place in chosen],
            None if pairs.weights is None else pairs.weights[chosen],
        )
    effects = find_age_effects(scores)
    return ComparedAges(effects) if effects else None


def _is_about_references(metric: MetricRecord) -> bool:
    """Return whether a metric reads references; False for one that is not installed here."""
    try:
        request = MetricSettings(name=metric.installed, parameters=metric.parameters, key=metric.key).request()
    except AssayError:
        return False
    return bool(about_references([request]))


def sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence on the metrics that are worse where references are older."""
    found = comparison.find(ComparedAges)
    if found is not None:
        yield f"{_describe_changes(found.effects)}; {_QUESTION}"


def _describe_changes(effects: Mapping[str, AgeEffect]) -> str:
    changes = ", ".join(
        f"{metric} by {-effect.old:.3f} ({effect.rows:,} rows), others by {-effect.others:.3f}"
        for metric, effect in effects.items()
    )
    day = format_day(next(iter(effects.values())).before)
    return f"rows with references from before {day} became worse: {changes}"


FINDING = Finding(
    summary=(ReferenceAges,),
    count=count,
    lines=age_lines,
    reading=how_to_read,
    comparison=FindingComparison(compare=compare, sentences=sentences),
)
