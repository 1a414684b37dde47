"""Check runs, for the modules that take a whole configuration."""

from flows.config.run_config import RunConfig
from flows.planning.metric_plan import MetricPlan
from flows.planning.planner import plan_run
from flows.planning.run_checks import run_checks

__all__ = ["check_run", "run_checks"]


def check_run(config: RunConfig) -> MetricPlan:
    """Plan a run, check it, and return its metrics; see `plan_run`."""
    return plan_run(config).metrics
