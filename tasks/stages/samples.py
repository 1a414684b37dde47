"""The stage `samples`: the rows to evaluate, checked, with ids, in shards."""

from dataclasses import dataclass

from pydantic import Field

from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.options.narrow import narrow
from tasks.options.source_options import DataOptions
from tasks.sources import BadRow, SourceOptions, read_samples
from tasks.stages.base import make_prefect_task, progress_reporter
from tasks.tables.table_store import StageRef, TableStore


class SamplesSettings(DataOptions):
    """Which rows are read, and how.

    Args:
        shard_rows: Number of rows per shard.
        required: Metric -> the columns that it needs.
    """

    only_options = False

    shard_rows: int = 2000
    required: dict[str, tuple[str, ...]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BadRowNote:
    """A row that was left out, for the manifest."""

    number: int
    column: str | None
    problem: str

    @classmethod
    def of(cls, bad: BadRow) -> "BadRowNote":
        """A note of a bad row. The problem ends with what the number alone does not tell: the line, the file."""
        return cls(
            number=bad.number,
            column=bad.column,
            problem=f"{bad.problem} ({bad.detail})" if bad.detail else bad.problem,
        )


@dataclass(frozen=True, slots=True)
class SamplesResult:
    """The shards, and what was found on the way.

    Args:
        refs: the shards' tables.
        rows_read: rows in the source, bad ones included.
        bad_rows: the rows left out.
        bad_row_count: how many those are; the list may be cut.
        warnings: what a person should know about the data.
    """

    refs: tuple[StageRef, ...]
    rows_read: int
    bad_rows: tuple[BadRowNote, ...]
    bad_row_count: int
    warnings: tuple[str, ...]


def read_shards(settings: SamplesSettings, tables: str) -> SamplesResult:
    """Reads the source and stores it in shards.

    Args:
        settings: where the rows come from and what is asked of them.
        tables: root of the store of stage tables.
    """
    store = TableStore(tables)
    options = narrow(settings, SourceOptions, batch_rows=settings.shard_rows)
    reader = read_samples(settings.source or "", options, settings.required)
    tell = progress_reporter(Stage.SAMPLES)
    refs = []
    for table in reader:
        tell(table.num_rows, table.num_rows)
        refs.append(store.write(table, SAMPLES))
    return SamplesResult(
        refs=tuple(refs),
        rows_read=reader.rows_read,
        bad_rows=tuple(map(BadRowNote.of, reader.bad_rows)),
        bad_row_count=reader.bad_row_count,
        warnings=tuple(reader.warnings),
    )


samples = make_prefect_task(Stage.SAMPLES, 1, read_shards, str(Stage.SAMPLES))
