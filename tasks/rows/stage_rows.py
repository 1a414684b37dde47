"""Hold the results of a stage for some samples: a table sorted by sample, and the digest of each sample's rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from metric_core.records import AnswerStatus
from metric_core.stages import JUDGED, Stage
from tasks.rows.merge import number_ranges, sort_rows, take_rows
from tasks.rows.row_digests import Digests, bounds_of, digest_rows


@dataclass(frozen=True, slots=True)
class StageRows:
    """The results of a stage for some samples, in their order.

    Args:
        table: Table of the stage, sorted by sample.
        bounds: Row of the table at which the results of each sample begin, and its end: one more than samples.
        digests: Digest of each sample's results.
    """

    table: pa.Table
    bounds: NDArray[np.int64]
    digests: Digests

    @classmethod
    def from_table(cls, stage: Stage, table: pa.Table, row_ids: pa.Array) -> Self:
        """Return the results in a table, whatever the order of its rows.

        Args:
            table: Table of the stage, all of whose rows belong to the samples.
        """
        ordered = sort_rows(table, row_ids)
        bounds = bounds_of(ordered, row_ids)
        return cls(ordered, bounds, digest_rows(ordered, bounds, stage))

    @classmethod
    def of_samples(cls, table: pa.Table, digests: Digests) -> Self:
        """Return the samples, one for each row."""
        return cls(table, np.arange(table.num_rows + 1), digests)

    @classmethod
    def concat(cls, parts: "Sequence[StageRows]") -> "StageRows":
        """Return the results of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.diff(part.bounds) for part in parts])
        table = pa.concat_tables([part.table for part in parts])
        return cls(table, bounds_from(sizes), np.concatenate([part.digests for part in parts]))

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.digests)

    def cut(self, start: int, end: int) -> "StageRows":
        """Return the results of consecutive samples, without copying them."""
        bounds = self.bounds[start : end + 1]
        table = self.table.slice(bounds[0], bounds[-1] - bounds[0])
        return StageRows(table, bounds - bounds[0], self.digests[start:end])

    def select(self, positions: NDArray[np.int64]) -> "StageRows":
        """Return the results of some samples, in the order of their positions."""
        if len(positions) == len(self) and np.array_equal(positions, np.arange(len(self))):
            return self
        starts, sizes = self.bounds[positions], np.diff(self.bounds)[positions]
        return StageRows(
            take_rows(self.table, number_ranges(starts, sizes)), bounds_from(sizes), self.digests[positions]
        )

    def find_failed(self, stage: Stage) -> NDArray[np.bool_]:
        """Return for each sample whether one of its answers failed, which a later run asks for again."""
        if stage not in JUDGED:
            return np.zeros(len(self), bool)
        failed = pc.equal(self.table["status"], str(AnswerStatus.FAILED)).to_numpy()
        counts = np.concatenate([[0], np.cumsum(failed)])[self.bounds]
        found: NDArray[np.bool_] = np.diff(counts) > 0
        return found


def interleave(first: StageRows, positions: NDArray[np.int64], second: StageRows) -> StageRows:
    """Return the results of two groups of samples in one order.

    Args:
        first: Results of the samples at the positions.
        positions: Positions of these samples in the result, ascending.
        second: Results of all other samples, in order.
    """
    is_first = np.zeros(len(first) + len(second), bool)
    is_first[positions] = True
    order = np.empty(len(is_first), np.int64)
    order[is_first] = np.arange(len(first))
    order[~is_first] = len(first) + np.arange(len(second))
    return StageRows.concat([first, second]).select(order)


def bounds_from(sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the bounds of consecutive spans of some sizes: 0, and the end of each."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
