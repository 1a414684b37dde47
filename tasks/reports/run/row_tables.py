"""The tables of a run, narrowed to one row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metric_core.stages import Stage
from tasks.reports.truncation import Row


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
