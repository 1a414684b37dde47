"""The summary of a run: the content of summary.json."""

from functools import cached_property
from typing import Any

from pydantic import Field

from metric_core.statistics.summary import MetricSummary
from tasks.record.findings import Findings


class RunSummary(Findings):
    """The summary of a run.

    Args:
        rows: Number of rows.
        metrics: Summary of each metric, in the order of the run.
        verdict: `binary` or `probability`, as verdicts count; None in a run without verdicts.
    """

    rows: int = Field(ge=0)
    metrics: tuple[MetricSummary, ...]
    verdict: str | None = None

    @cached_property
    def by_metric(self) -> dict[str, MetricSummary]:
        """The summary of each metric by its key."""
        return {summary.metric: summary for summary in self.metrics}

    def to_json(self) -> dict[str, Any]:
        """Return the content of summary.json, without empty entries."""
        content = self.model_dump(mode="json")
        return {name: entry for name, entry in content.items() if entry or name in {"rows", "metrics"}}
