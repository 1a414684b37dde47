"""The rows of all tables of a run that belong to one sample."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metric_core.errors import RunFolderError
from metric_core.metrics.context_entity_recall import CONTEXT_ENTITY_RECALL, NORMALIZED
from metric_core.stages import EVIDENCE_STAGES, Stage
from tasks.record.run_record import MetricRecord
from tasks.reports.run.stored_rows import StoredRows
from tasks.reports.truncation import Row
from tasks.runs.run_folder import table_name

_STAGES = (Stage.SAMPLES, Stage.AGGREGATION, *EVIDENCE_STAGES)
_SAMPLES_AT_ONCE = 32
"""Samples whose rows are Python values at the same time: few enough for the processor's caches."""


def entity_match(metrics: Iterable[MetricRecord]) -> str:
    """Return the parameter `match` of context entity recall in a run, which says how entities are compared."""
    modes = (metric.parameters.get("match") for metric in metrics if metric.name == CONTEXT_ENTITY_RECALL.name)
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


def read_row_tables(folder: Path, row_ids: Sequence[str]) -> Iterator[RowTables]:
    """Yield the tables of samples of a run, in the order of their ids.

    Args:
        row_ids: Ids of the samples, each once.

    Raises:
        RunFolderError: A table cannot be read, or a sample is missing.
    """
    tables = {stage: StoredRows.read(folder / table_name(stage), stage, row_ids) for stage in _STAGES}
    missing = [row_ids[i] for i in tables[Stage.SAMPLES].without_rows()]
    if missing:
        raise RunFolderError(
            f"the samples table of {folder} lacks {len(missing)} rows that have scores, {missing[0]!r} among them. "
            "Run the evaluation again."
        )
    for start in range(0, len(row_ids), _SAMPLES_AT_ONCE):
        stop = min(start + _SAMPLES_AT_ONCE, len(row_ids))
        by_stage = {stage: rows.of_samples(start, stop) for stage, rows in tables.items()}
        for i in range(stop - start):
            stages = {stage: rows[i] for stage, rows in by_stage.items()}
            samples, cells = stages.pop(Stage.SAMPLES), stages.pop(Stage.AGGREGATION)
            yield RowTables(samples[0], cells, stages)
