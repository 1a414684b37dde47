"""Plan the anchor of a configuration, for the modules that take a whole configuration."""

from dataclasses import dataclass
from typing import Any

from flows.config.run_config import RunConfig
from flows.execution.plan import complete
from flows.planning import anchor_plan as planned
from flows.planning.metric_plan import MetricPlan


@dataclass(frozen=True, slots=True)
class AnchorPlan(planned.AnchorPlan):
    """The evaluation of an anchor, with the configuration that is equal to its plan.

    Args:
        config: Configuration of its evaluation.
    """

    config: RunConfig

    @property
    def plan(self) -> MetricPlan:
        """The metrics of the anchor."""
        return self.run.metrics


def plan_anchor(config: RunConfig, plan: MetricPlan) -> AnchorPlan | None:
    """Return the plan of the anchor; None if the configuration has no anchor.

    Args:
        config: Configuration of the run.
        plan: Metrics of the run.
    """
    found = planned.plan_anchor(complete(config, plan))
    if found is None:
        return None
    of_anchor = found.run
    changes: dict[str, Any] = {
        **{
            name: getattr(of_anchor.source, name)
            for name in ("source", "column_map", "id_column", "limit", "retriever")
        },
        **{name: getattr(of_anchor.outputs, name) for name in ("baseline", "by", "metrics_file", "otlp", "slices")},
        "anchor": None,
        "explain": "none",
        "refresh": (),
    }
    return AnchorPlan(found.settings, of_anchor, config.model_copy(update=changes))
