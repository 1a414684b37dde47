"""Plan the metrics of a configuration, for the modules that take a whole configuration."""

from dataclasses import replace

from flows.config.run_config import RunConfig
from flows.planning.metric_plan import MetricPlan as Plan
from flows.planning.metric_plan import make_plan, products_of
from flows.planning.planner import compose_plan, draft_plan
from flows.planning.run_plan import RunPlan
from tasks.options.metric_options import MetricOptions
from tasks.options.narrow import narrow

__all__ = ["Plan", "complete", "make_plan", "plan_run", "products_of"]


def plan_run(config: RunConfig) -> Plan:
    """Return the metrics of a run; see `draft_plan`."""
    return draft_plan(config).metrics


def complete(config: RunConfig, metrics: Plan, ending: str = "") -> RunPlan:
    """Return the plan of a run whose metrics are planned without its options."""
    options = narrow(config, MetricOptions)
    return compose_plan(config, replace(metrics, verdict=config.verdict_kind, options=options), ending)
