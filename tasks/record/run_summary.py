"""The summary of a run: the content of summary.json."""

from functools import cached_property
from typing import Any

from pydantic import Field

from metric_core.statistics.agreement import Agreement
from metric_core.statistics.resampling import Interval
from metric_core.statistics.slice_summary import ColumnSummary
from metric_core.statistics.summary import MetricSummary
from tasks.record.findings import Findings
from tasks.record.part import Part

_LEFT_OUT = {"slices": {"__all__": {"slices": {"__all__": {"metrics": {"__all__": {"reasons"}}}}}}}
"""Reasons of the cells of slices, which nothing shows."""


class ClassCount(Part):
    """The rows of a class of the diagnosis.

    Args:
        name: Name of the class.
        count: Number of its rows.
        share: Share of all diagnosed rows.
        interval: 95 % interval of the share; None for few rows.
    """

    name: str
    count: int = Field(ge=0)
    share: float
    interval: Interval | None


class RefusalCounts(Part):
    """The rows whose answers decline.

    Args:
        rows: Number of these rows.
        kinds: Kind of refusal -> number of rows.
        recognized_by: `judge` or `forms`.
    """

    rows: int = Field(ge=0)
    kinds: dict[str, int] = Field(default_factory=dict)
    recognized_by: str


class DiagnosisCounts(Part):
    """The diagnosis of a run, counted over its rows.

    Args:
        rows: Number of rows.
        classes: All classes, in the order of the documentation.
        key_points: Number of key points (`points`), and of those that each part lost; None if none were judged.
        reasons: Reason -> number of rows without a diagnosis for it.
        lacking: Verdicts that a finer diagnosis needs -> number of rows that lack them.
    """

    rows: int = Field(ge=0)
    classes: tuple[ClassCount, ...]
    key_points: dict[str, int] | None = None
    reasons: dict[str, int]
    lacking: dict[str, int]
    refusals: RefusalCounts


class CascadeCount(Part):
    """The verdicts that the cheaper judge of a cascade was asked for.

    Args:
        asked: Number of verdicts.
        alone: Number of these that it gave without the other judge.
    """

    asked: int = Field(ge=0)
    alone: int = Field(ge=0)


class CorrectedMeanRecord(Part):
    """The bias-corrected mean of a metric, on the scale of the labels: grades, or the share of yes.

    Args:
        label: Column of the labels.
        span: Labels that correspond to 0 and 1; None for yes and no.
        value: Estimate; None if the labelled rows do not determine it.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        method: Name of the method of estimation.
        reason: Sentence about the method, or about why there is no estimate.
        labelled: Number of labelled rows that it rests on.
        rows: Number of scored rows that it is about.
        unit: Name of the labelled items, if they are not rows.
    """

    label: str
    span: tuple[float, float] | None
    value: float | None
    low: float
    high: float
    method: str
    reason: str
    labelled: int | None
    rows: int
    unit: str = "rows"


class RunSummary(Findings):
    """The summary of a run.

    Args:
        rows: Number of rows.
        metrics: Summary of each metric, in the order of the run.
        slices: Summaries by slice, one item per column.
        cascade: Verdicts, as `describe_verdicts` names them -> who gave them; empty without a cascade.
        agreement: Stage -> kind of verdict or metric -> agreement of a panel; empty without a panel.
        bias_corrected: Metric -> bias-corrected mean, for metrics with labels or a calibration.
        diagnosis: Diagnosis of the run, counted by class; None without rows.
        verdict: `binary` or `probability`, as verdicts count; None in a run without verdicts.
    """

    rows: int = Field(ge=0)
    metrics: tuple[MetricSummary, ...]
    slices: tuple[ColumnSummary, ...] = ()
    cascade: dict[str, CascadeCount] = Field(default_factory=dict)
    agreement: dict[str, dict[str, Agreement]] = Field(default_factory=dict)
    bias_corrected: dict[str, CorrectedMeanRecord] = Field(default_factory=dict)
    diagnosis: DiagnosisCounts | None = None
    verdict: str | None = None

    @cached_property
    def by_metric(self) -> dict[str, MetricSummary]:
        """The summary of each metric by its key."""
        return {summary.metric: summary for summary in self.metrics}

    def to_json(self) -> dict[str, Any]:
        """Return the content of summary.json, without empty entries."""
        content = self.model_dump(mode="json", exclude=_LEFT_OUT)
        return {name: entry for name, entry in content.items() if entry or name in {"rows", "metrics"}}
