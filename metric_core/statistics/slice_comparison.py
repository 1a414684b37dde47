"""Compare two runs slice by slice, with outcomes that hold over all slices and metrics together.

The slices are a separate family of tests: if two systems are equal, any slice is called better or worse in at most
5 % of comparisons, whatever the comparison of all rows says. That comparison stays as it is without slices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from metric_core.statistics.comparison import (
    ChangeOutcome,
    MetricComparison,
    PairedMetric,
    compare_metric,
    decide_outcomes,
)
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.resampling import SEED
from metric_core.statistics.slices import SMALL_SLICE, RowSlices, Slice


@dataclass(frozen=True, slots=True)
class SliceComparison:
    """A metric in two runs, over the rows of a slice.

    Args:
        rows: Number of rows of the slice in the second run.
        is_small: True if so few rows are compared that the difference can be far from the truth.
    """

    slice: Slice
    rows: int
    is_small: bool
    comparison: MetricComparison

    @property
    def stands_out(self) -> bool:
        """Whether the comparison has an outcome besides "no clear difference"."""
        return self.comparison.verdict not in {ChangeOutcome.UNCLEAR, ChangeOutcome.NOT_COMPARED}


def compare_slices(
    columns: Sequence[ScoreColumns], slices: Sequence[RowSlices], seed: int = SEED
) -> list[SliceComparison]:
    """Compare every metric of two runs in every slice.

    Args:
        slices: Slices of the rows of both runs, by column.

    Returns:
        A comparison per slice, metric and scale: slices in the order of their column, metrics in theirs.

    >>> from metric_core.records import Direction, Score
    >>> from metric_core.statistics.slices import divide_rows
    >>> topics = {f"row {i}": ("travel" if i < 20 else "vacation") for i in range(60)}
    >>> a = {row: Score.scored(1) for row in topics}
    >>> b = {row: Score.scored(float(topic == "vacation")) for row, topic in topics.items()}
    >>> columns = ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a=a, b=b, bounds=(0, 1))
    >>> found = compare_slices([columns], [divide_rows("topic", topics)])
    >>> [(str(part.slice), part.rows, part.comparison.verdict.value) for part in found]
    [('topic vacation', 40, 'no clear difference'), ('topic travel', 20, 'worse')]
    """
    places: list[tuple[Slice, int]] = []
    comparisons: list[MetricComparison] = []
    for sliced in slices:
        parts = [column.split(sliced) for column in columns]
        for value in sliced.sizes:
            rows = max((len(part[value].b) for part in parts), default=0)
            for part in parts:
                compared = compare_metric(PairedMetric.from_columns(part[value]), seed)
                comparisons += compared
                places += [(Slice(sliced.column, value), rows)] * len(compared)
    return [
        SliceComparison(place, rows, comparison.rows.paired < SMALL_SLICE, comparison)
        for (place, rows), comparison in zip(places, decide_outcomes(comparisons), strict=True)
    ]
