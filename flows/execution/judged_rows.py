"""Compute the stages of some rows again whose questions have labels, and the scores that follow."""

from collections.abc import Collection, Mapping

from flows.planning.metric_plan import MetricPlan
from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tasks.opening.run_models import RunModels
from tasks.options.settings import Settings
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import Tables

LABELLED = frozenset({Stage.RATINGS, Stage.VERDICTS})
"""Stages that ask a judge for labels; the texts that it writes are not asked for again."""
SCORED = LABELLED | {Stage.AGGREGATION}
"""These, and the stage of the scores."""


def judge_rows(
    metrics: MetricPlan,
    settings: Mapping[Stage, Settings],
    tables: Tables,
    models: RunModels,
    stages: Collection[Stage] = SCORED,
) -> tuple[Tables, StageUsage]:
    """Return the tables with those of some stages computed again, and what they cost.

    Args:
        tables: Tables of the rows.
        stages: Stages to compute, if the metrics need them.
    """
    result, usage = dict(tables), StageUsage()
    for stage in metrics.sharded_stages:
        if stage in stages:
            inputs = {each: result[each] for each in metrics.inputs_of(stage)}
            computed = STAGES[stage].compute(inputs, settings[stage], models.select(settings[stage]))
            result[stage], usage = computed.table, usage + computed.usage
    return result, usage


def scores_of(tables: Tables) -> dict[tuple[str, str], float]:
    """Return the scores in tables: row and metric -> value."""
    cells = tables[Stage.AGGREGATION].to_pylist()
    return {(cell["row_id"], cell["metric"]): cell["value"] for cell in cells if cell["value"] is not None}
