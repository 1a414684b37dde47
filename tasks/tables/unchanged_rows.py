"""Take the rows of stage tables that have not changed from the tables of an earlier run.

A shard in which few rows have changed is not computed again: the changed rows of all shards are packed into shards of
their own, and the results are merged with the rows of the earlier tables. A row with a failed answer counts as changed.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from metric_core.errors import AssayError
from metric_core.records import AnswerStatus
from metric_core.schemas import SAMPLES, SCHEMAS
from metric_core.stages import JUDGED, Stage
from tasks.runtime.usage import KindUsage, StageUsage
from tasks.tables.kept_tables import kept_usage
from tasks.tables.merge import select_rows, sort_rows
from tasks.tables.row_index import RowIndex, RowIndexes
from tasks.tables.table_store import StageRef, TableStore, read, read_unchanged

MOST_SHARDS = 4
"""Earlier shards whose tables a shard reads; rows in further shards count as changed."""

LEAST_SHARE = 0.5
"""Share of unchanged rows from which on a shard is merged rather than computed."""

FRESH_TABLES = 2 * len(Stage)
"""Tables of changed rows that are in memory at the same time: those of all stages of two shards."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartlyChanged:
    """A shard of which many rows have not changed.

    Args:
        samples: Samples of the shard.
        unchanged: Mapping from the earlier shard to the ids of the rows that are taken from its tables.
        changed: Ids of the other rows.
    """

    samples: StageRef
    unchanged: Mapping[int, Collection[str]]
    changed: Collection[str]


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged table.

    Args:
        ref: Reference to it.
        is_complete: True if no row has a failed answer.
    """

    ref: StageRef
    is_complete: bool


class UnchangedRows:
    """The rows of an earlier run that a run can take.

    Args:
        tables: Root of the table store.
        indexes: Indexes of the table store, which compute the digests of rows.
        index: Rows of the earlier run.
        stages: Stages whose rows are taken, with all stages that they read.
    """

    def __init__(self, tables: str, indexes: RowIndexes, index: RowIndex, stages: Collection[Stage]) -> None:
        self.stages = stages
        self._store = TableStore(tables)
        self._indexes = indexes
        self._index = index
        self._failed: dict[int, frozenset[str]] = {}
        self._counted: set[tuple[Stage, str]] = set()
        self._packed: dict[str, range] = {}  # positions of the changed rows of a shard among all that are packed
        self._packed_rows = 1
        self._fresh: OrderedDict[tuple[Stage, str], pa.Table] = OrderedDict()
        self._lock = Lock()

    def split(self, samples: StageRef) -> PartlyChanged | None:
        """Return which rows of a shard have changed; None if too many have.

        Args:
            samples: Samples of the shard.
        """
        shards = self._index.find(self._indexes.digests(samples)).tolist()
        row_ids: list[str] = read(samples, ["row_id"])["row_id"].to_pylist()
        sizes = Counter(shard for shard in shards if shard >= 0)
        unchanged: dict[int, set[str]] = {}
        for shard, _ in sizes.most_common(MOST_SHARDS):
            failed = self._failed_rows(shard)
            found = {row_id for row_id, place in zip(row_ids, shards, strict=True) if place == shard} - failed
            if found:
                unchanged[shard] = found
        taken = set().union(*unchanged.values())
        if len(taken) < LEAST_SHARE * len(row_ids):
            return None
        return PartlyChanged(samples, unchanged, [row_id for row_id in row_ids if row_id not in taken])

    def pack(self, splits: Sequence[PartlyChanged], rows: int) -> list[StageRef]:
        """Write the changed rows of several shards into shards of their own.

        Args:
            splits: The shards.
            rows: Maximum number of rows per new shard.
        """
        end, self._packed_rows = 0, rows
        for split in splits:
            self._packed[split.samples.digest] = range(end, end + len(split.changed))
            end += len(split.changed)
        changed = [select_rows(read(split.samples), split.changed) for split in splits if split.changed]
        if not changed:
            return []
        table = pa.concat_tables(changed)
        return [self._store.write(table.slice(start, rows), SAMPLES) for start in range(0, table.num_rows, rows)]

    def merge(self, split: PartlyChanged, stage: Stage, fresh: Sequence[StageRef]) -> Merged | None:
        """Write the table of a stage for a shard; return None if an earlier table cannot be used any more.

        Args:
            split: The shard.
            stage: The stage.
            fresh: Tables of the changed rows of all shards, as `pack` packed them.
        """
        usage = StageUsage()
        parts = []
        try:
            for shard, row_ids in split.unchanged.items():
                tables = self._index.shards[shard]
                parts.append(select_rows(read_unchanged(tables[stage]), row_ids))
                usage += _share(tables[stage].usage, len(row_ids) / tables[Stage.SAMPLES].rows)
        except (AssayError, KeyError) as error:
            _logger.warning("rows of an earlier run are not used: %s; their stage is recomputed", error)
            return None
        is_complete = True
        for ref in self._with_rows_of(split, fresh):
            part = select_rows(self._read_fresh(ref), split.changed)
            parts.append(part)
            is_complete = is_complete and not (stage in JUDGED and _failed_rows(part))
            if part.num_rows and (stage, ref.digest) not in self._counted:  # what was asked is counted once
                self._counted.add((stage, ref.digest))
                usage += ref.usage
        order = read(split.samples, ["row_id"])["row_id"].combine_chunks()
        ref = self._store.write(sort_rows(pa.concat_tables(parts), order), SCHEMAS[stage], usage)
        return Merged(ref, is_complete)

    def _with_rows_of(self, split: PartlyChanged, fresh: Sequence[StageRef]) -> Sequence[StageRef]:
        """Return the tables that have changed rows of a shard."""
        places = self._packed[split.samples.digest]
        return fresh[places.start // self._packed_rows : (places.stop - 1) // self._packed_rows + 1] if places else ()

    def _read_fresh(self, ref: StageRef) -> pa.Table:
        """Return a table of changed rows, which the merges of many shards read one after the other."""
        key = (ref.stage, ref.digest)
        with self._lock:
            if key not in self._fresh:
                self._fresh[key] = read(ref)
                if len(self._fresh) > FRESH_TABLES:
                    self._fresh.popitem(last=False)
            self._fresh.move_to_end(key)
            return self._fresh[key]

    def _failed_rows(self, shard: int) -> frozenset[str]:
        """Return the ids of the rows of an earlier shard that have a failed answer."""
        if shard not in self._failed:
            failed: set[str] = set()
            for stage in self.stages:
                if stage in JUDGED:
                    failed |= self._failed_rows_of(self._index.shards[shard][stage])
            self._failed[shard] = frozenset(failed)
        return self._failed[shard]

    @staticmethod
    def _failed_rows_of(ref: StageRef) -> frozenset[str]:
        try:
            return _failed_rows(read(ref, ["row_id", "status"]))
        except AssayError:
            return frozenset()  # merging finds that the table cannot be used


def _failed_rows(table: pa.Table) -> frozenset[str]:
    return frozenset(table.filter(pc.equal(table["status"], AnswerStatus.FAILED))["row_id"].to_pylist())


def _share(usage: StageUsage, share: float) -> StageUsage:
    """Return the cost of a share of the rows of a kept table; the questions of single rows are not counted."""
    kept = kept_usage(usage)
    return StageUsage(
        questions=round(kept.questions * share),
        stored=round(kept.stored * share),
        long_texts=round(kept.long_texts * share),
        languages={language: round(count * share) for language, count in kept.languages.items()},
        kinds={
            kind: KindUsage(questions=round(cost.questions * share), stored=round(cost.stored * share))
            for kind, cost in kept.kinds.items()
        },
    )
