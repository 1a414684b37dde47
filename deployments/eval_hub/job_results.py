"""Convert a finished run to JobResults of eval-hub."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import BaseModel, Field

from deployments.eval_hub.job_spec import JobSpec
from metric_core.records import Direction
from metric_core.statistics.summary import Distribution, MetricSummary
from tasks.runs.run_folder import RunFolder

PRIMARY, THRESHOLD = "faithfulness", 0.5
"""Metric by which eval-hub's provider passes a benchmark if the job names none, and the lowest passing value."""


class MetricResult(BaseModel):
    """The result of a metric over all rows.

    Args:
        metric_value: Mean over the rows that have a score.
        metric_type: Always `float`.
        confidence_interval: 95 % interval of the mean; None for fewer than five rows.
        num_samples: Number of rows that have a score.
        metadata: Lowest and highest score, direction, and numbers and reasons of rows without a score.
    """

    metric_name: str
    metric_value: float
    metric_type: str = "float"
    confidence_interval: tuple[float, float] | None = None
    num_samples: int
    metadata: dict[str, Any] = Field(default_factory=dict)


class JobResults(BaseModel):
    """The results of a job. Metrics without any score are not in `results`, but in `evaluation_metadata`, with why."""

    id: str
    benchmark_id: str
    benchmark_index: int
    model_name: str
    results: list[MetricResult]
    overall_score: float | None
    num_examples_evaluated: int
    duration_seconds: float
    completed_at: datetime
    evaluation_metadata: dict[str, Any] = Field(default_factory=dict)
    oci_artifact: dict[str, str] | None = None
    mlflow_run_id: str | None = None


def build_results(job: JobSpec, folder: Path, seconds: float) -> JobResults:
    """Return the results of a job from the folder of its run.

    Args:
        seconds: Duration of the job in seconds.
    """
    record, summary = RunFolder(folder).read_finished_record(), RunFolder(folder).read_summary()
    bounds = {metric.key: metric.bounds for metric in record.metrics}
    scored = [(metric, metric.distribution) for metric in summary.metrics if metric.distribution is not None]
    counted = [each for each in scored if _is_in_overall_score(each[0].direction, bounds[each[0].metric])]
    primary = _primary(job, {metric.metric: distribution.mean for metric, distribution in scored})
    means = [_goodness(metric.direction, distribution.mean) for metric, distribution in counted]
    content = record.model_dump(mode="json", include={"judge", "embedder", "warnings"})
    metadata = {
        "framework": "rag-assay",
        "framework_version": record.release,
        "run_id": record.run_id,
        "run_folder": str(folder),
        **content,
        "not_scored": {each.metric: each.reasons for each in summary.metrics if each.distribution is None},
        "overall_score_of": {metric.metric: metric.direction for metric, _ in counted},
        "primary_score": primary,
        "bad_rows": record.bad_row_count,
        "unused_fields": list(job.unused),
    }
    return JobResults(
        id=job.id,
        benchmark_id=job.benchmark_id,
        benchmark_index=job.benchmark_index,
        model_name=job.model.name,
        results=[_result(*each) for each in scored],
        overall_score=_overall_score(job, primary, means),
        num_examples_evaluated=summary.rows,
        duration_seconds=round(seconds, 3),
        completed_at=datetime.now(UTC),
        evaluation_metadata=metadata,
    )


def _result(metric: MetricSummary, distribution: Distribution) -> MetricResult:
    interval = distribution.interval
    metadata = {
        "min": distribution.least,
        "max": distribution.greatest,
        "direction": metric.direction,
        "undefined": metric.undefined,
        "failed": metric.failed,
        "reasons": metric.reasons,
    }
    return MetricResult(
        metric_name=metric.metric,
        metric_value=distribution.mean,
        confidence_interval=(interval.low, interval.high) if interval else None,
        num_samples=metric.scored,
        metadata=metadata,
    )


def _is_in_overall_score(direction: Direction, bounds: tuple[float, float] | None) -> bool:
    """Return whether a metric is part of the overall score: its range is 0 to 1, and it has a direction."""
    return direction is not Direction.NEITHER and bounds == (0, 1)


def _goodness(direction: Direction, mean: float) -> float:
    """Return the mean of a metric, or 1 minus the mean if lower is better."""
    return 1 - mean if direction is Direction.LOWER else mean


def _primary(job: JobSpec, means: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the value of the primary metric; if the job names none, with the threshold of eval-hub's provider."""
    named = job.primary_score
    wanted = PRIMARY if named is None else named.metric
    value = means.get(wanted)
    if value is None:
        return None
    if named is not None:
        return {"metric": wanted, "value": value, "lower_is_better": named.lower_is_better}
    return {"metric": wanted, "value": value, "threshold": THRESHOLD, "passed": value >= THRESHOLD}


def _overall_score(job: JobSpec, primary: dict[str, Any] | None, means: list[float]) -> float | None:
    """Return the value of the metric that the job names as primary; without one, the mean over the metrics."""
    if job.primary_score is not None:
        return None if primary is None else float(primary["value"])
    return fmean(means) if means else None
