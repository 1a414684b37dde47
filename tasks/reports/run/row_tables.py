"""The tables of a run, narrowed to one row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core.metrics.context_entity_recall import CONTEXT_ENTITY_RECALL, NORMALIZED
from metric_core.stages import Stage
from tasks.reports.truncation import Row


def entity_match(metrics: Iterable[Mapping[str, Any]]) -> str:
    """Return how entities are compared in a run: the parameter `match` of context entity recall.

    Args:
        metrics: Metrics of the run, as run.json describes them.
    """
    found = (entry["parameters"].get("match") for entry in metrics if entry["name"] == CONTEXT_ENTITY_RECALL.name)
    return next(filter(None, found), NORMALIZED)


@dataclass(frozen=True, slots=True)
class RowTables:
    """The rows of all tables that belong to one sample.

    Args:
        sample: Its row of the samples table.
        cells: Its rows of the score table.
        stages: Its rows of the other tables, by stage; a stage that was not needed may be missing.
    """

    sample: Row
    cells: Sequence[Row]
    stages: Mapping[Stage, Sequence[Row]]

    def rows(self, stage: Stage) -> Sequence[Row]:
        """Return the rows of a stage's table."""
        return self.stages.get(stage, ())
