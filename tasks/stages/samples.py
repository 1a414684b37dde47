"""Read the rows to evaluate, check them, and store them in shards: the stage `samples`."""

from dataclasses import dataclass

from pydantic import Field

from metric_core.stages import Stage
from tasks.options.grouping_options import GroupingOptions
from tasks.options.narrow import narrow
from tasks.options.slicing_options import SlicingOptions
from tasks.options.source_options import DataOptions
from tasks.prefect_support.prefect_task import make_prefect_task
from tasks.record.judgments import JudgmentsRecord
from tasks.record.run_record import BadRowNote
from tasks.rows.table_store import Samples, TableStore
from tasks.runs.carried_evidence import warn_about_judgments
from tasks.runs.row_grouping import group_column
from tasks.runs.row_slicing import SliceColumn
from tasks.runs.row_weights import RowWeights
from tasks.sources import BadRow, SourceOptions, read_samples
from tasks.stages.definition import Progress, ignore_progress


class SamplesSettings(SlicingOptions, GroupingOptions, DataOptions):
    """Settings of the stage `samples`.

    Args:
        required: Metric -> the columns that it needs.
    """

    only_options = False

    shard_rows: int = 2000
    required: dict[str, tuple[str, ...]] = Field(default_factory=dict)


def note_bad_row(bad: BadRow) -> BadRowNote:
    """Return the note of a bad row; its problem ends with the line and file."""
    problem = f"{bad.problem} ({bad.detail})" if bad.detail else bad.problem
    return BadRowNote(number=bad.number, column=bad.column, problem=problem)


@dataclass(frozen=True, slots=True)
class SamplesResult:
    """The result of reading a source.

    Args:
        rows_read: Number of rows in the source, including bad rows.
        bad_rows: Rows that were left out; a long list is cut.
        bad_row_count: Total number of rows that were left out.
        warnings: Warnings about the data for the user.
        judgments: Counts of the judgments of texts by state; None if there are none.
    """

    refs: tuple[Samples, ...]
    rows_read: int
    bad_rows: tuple[BadRowNote, ...]
    bad_row_count: int
    warnings: tuple[str, ...]
    judgments: JudgmentsRecord | None = None


def read_shards(settings: SamplesSettings, tables: str, progress: Progress = ignore_progress) -> SamplesResult:
    """Read the source and store its rows in shards.

    Args:
        tables: Root of the table store.
        progress: Called as rows are read.
    """
    store = TableStore(tables)
    options = narrow(settings, SourceOptions, batch_rows=settings.shard_rows)
    reader = read_samples(settings.source or "", options, settings.required)
    refs = []
    grouping = None if settings.by is None else group_column(settings.by)
    slicing = [SliceColumn(name) for name in settings.slices]
    weights = RowWeights(settings.weights, settings.traffic)
    for table in reader:
        if grouping is not None:
            grouping.read(table)
        for column in slicing:
            column.read(table)
        weights.read(table)
        progress(table.num_rows, table.num_rows)
        refs.append(store.write(table))
    if grouping is not None:
        grouping.require_values()
    for column in slicing:
        column.check()
    weights.by_row()
    limited = [sentence for column in slicing if (sentence := column.warn()) is not None]
    return SamplesResult(
        refs=tuple(refs),
        rows_read=reader.rows_read,
        bad_rows=tuple(map(note_bad_row, reader.bad_rows)),
        bad_row_count=reader.bad_row_count,
        warnings=(*reader.warnings, *limited, *weights.warn(), *warn_about_judgments(reader.judgments)),
        judgments=reader.judgments,
    )


samples = make_prefect_task(Stage.SAMPLES, 1, read_shards, str(Stage.SAMPLES))
