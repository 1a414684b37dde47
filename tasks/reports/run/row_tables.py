"""What the tables of a run say about one row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metric_core.stages import Stage
from tasks.reports.truncation import Row


@dataclass(frozen=True, slots=True)
class RowTables:
    """What the tables say about one row.

    Args:
        sample: its row of the samples table.
        cells: its rows of the score table.
        stages: its rows of the other tables, by stage; a stage that was not needed may be missing.
    """

    sample: Row
    cells: Sequence[Row]
    stages: Mapping[Stage, Sequence[Row]]

    def of(self, stage: Stage) -> Sequence[Row]:
        """The rows of a stage's table."""
        return self.stages.get(stage, ())
