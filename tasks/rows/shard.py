"""Hold rows that are computed together, and where their results are."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.stages import Stage
from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.merge import take_rows
from tasks.rows.places import Places
from tasks.rows.row_digests import Digests
from tasks.rows.stage_rows import StageRows
from tasks.rows.table_store import Samples
from tasks.runtime.usage import StageUsage


@dataclass(frozen=True, eq=False, slots=True)
class Shard:
    """Rows from one or several shards of the source: small, and can be sent to another process.

    Args:
        number: Number of the shard, which names its tasks.
        samples: The samples of the shards of the source.
        parts: For each of these, its number and the positions of its rows that belong to the shard.
        digests: Digest of each row.
        places: Places of the results of each stage, in the order of the stages.
        usages: Cost of the stages whose results were missing.
    """

    number: int
    samples: tuple[Samples, ...]
    parts: tuple[tuple[int, NDArray[np.int64]], ...]
    digests: Digests
    places: dict[Stage, Places]
    usages: dict[Stage, StageUsage] = field(default_factory=dict)

    @classmethod
    def gather(cls, number: int, chosen: Sequence[tuple["Shard", NDArray[np.int64]]]) -> "Shard":
        """Return rows of shards of the source as one shard.

        Args:
            chosen: Shards of the source, each with the positions of the rows.
        """
        return cls(
            number,
            tuple(samples for shard, _ in chosen for samples in shard.samples),
            tuple((shard.number, positions) for shard, positions in chosen),
            np.concatenate([shard.digests[positions] for shard, positions in chosen]),
            {
                stage: Places.concat([shard.places[stage].select(positions) for shard, positions in chosen])
                for stage in chosen[0][0].places
            },
        )

    @staticmethod
    def move(shards: Sequence["Shard"], arrays: MappedArrays) -> list["Shard"]:
        """Return the same shards with mapped arrays, which take little memory."""
        owned = [array for shard in shards for array in (shard.digests, *(positions for _, positions in shard.parts))]
        moved = iter(arrays.move(owned))
        places = iter(Places.move([places for shard in shards for places in shard.places.values()], arrays))
        return [
            replace(
                shard,
                digests=next(moved),
                parts=tuple((number, next(moved)) for number, _ in shard.parts),
                places={stage: next(places) for stage in shard.places},
            )
            for shard in shards
        ]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.digests)

    @property
    def missing(self) -> list[Stage]:
        """The stages whose results are missing for some of the rows, in their order."""
        return [stage for stage, places in self.places.items() if places.missing.any()]

    def find_incomplete(self) -> NDArray[np.int64]:
        """Return the positions of the rows that lack the result of a stage."""
        is_missing = np.zeros(len(self), bool)
        for places in self.places.values():
            is_missing |= places.missing
        return np.flatnonzero(is_missing)

    def digests_of(self, stage: Stage) -> Digests:
        """Return the digest of each row's samples or results."""
        return self.digests if stage is Stage.SAMPLES else self.places[stage].digests

    def read_samples(self) -> StageRows:
        """Return the samples.

        Raises:
            AssayError: They cannot be read.
        """
        parts = zip(self.samples, self.parts, strict=True)
        table = pa.concat_tables([take_rows(samples.read(), positions) for samples, (_, positions) in parts])
        return StageRows.of_samples(table, self.digests)

    def add(self, stage: Stage, places: Places, usage: StageUsage) -> None:
        """Note the places of a stage's results, and what they cost."""
        self.places[stage], self.usages[stage] = places, usage

    def give_back(self, shards: Sequence["Shard"]) -> None:
        """Note the places of the results that were missing in the shards of the source, and forget them here.

        Args:
            shards: The shards of the source, by number.
        """
        start = 0
        for number, positions in self.parts:
            end, places = start + len(positions), shards[number].places
            for stage in self.usages:
                places[stage] = places[stage].put(positions, self.places[stage].cut(start, end))
            start = end
        self.places.clear()
