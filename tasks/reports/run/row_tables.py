"""The rows of all tables of a run that belong to one sample."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core.metrics.context_entity_recall import CONTEXT_ENTITY_RECALL, NORMALIZED
from metric_core.stages import Stage
from tasks.reports.truncation import Row


def entity_match(metrics: Iterable[Mapping[str, Any]]) -> str:
    """Return the parameter `match` of context entity recall in a run, which says how entities are compared.

    Args:
        metrics: Metrics of the run, as run.json describes them.
    """
    modes = (entry["parameters"].get("match") for entry in metrics if entry["name"] == CONTEXT_ENTITY_RECALL.name)
    return next(filter(None, modes), NORMALIZED)


@dataclass(frozen=True, slots=True)
class RowTables:
    """The rows of all tables that belong to one sample.

    Args:
        sample: Row of the samples table.
        cells: Rows of the score table.
        stages: Rows of the other tables, by stage; a stage that was not needed may be missing.
    """

    sample: Row
    cells: Sequence[Row]
    stages: Mapping[Stage, Sequence[Row]]

    def rows(self, stage: Stage) -> Sequence[Row]:
        """Return the rows of a stage's table."""
        return self.stages.get(stage, ())
