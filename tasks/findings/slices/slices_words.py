"""Order and describe the slices of a comparison, for terminal, Markdown and page."""

from collections.abc import Sequence

from metric_core.records import Direction
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison
from metric_core.statistics.slice_comparison import SliceComparison
from metric_core.statistics.slices import SMALL_SLICE
from tasks.documents.comparison.comparison_words import count_outcomes

MOST_SLICES = 20
"""Maximum number of slices to show first because they stand out."""

_ORDER = (ChangeOutcome.WORSE, ChangeOutcome.UNDECIDED, ChangeOutcome.DIFFERENT, ChangeOutcome.BETTER)


def worst_slices_first(slices: Sequence[SliceComparison]) -> list[SliceComparison]:
    """Return the comparisons in the order in which a reader wants them.

    Slices with an outcome come first, the worse before the better; then the others by how much worse they are, small
    ones last. Metrics without a direction count by the size of their difference.
    """
    return sorted(slices, key=_place)


def choose_slices(slices: Sequence[SliceComparison]) -> tuple[list[SliceComparison], list[SliceComparison]]:
    """Return the comparisons to show first, and the others that have a difference, the worst first.

    The first are those that stand out, and the worst slice of each other metric.
    """
    ordered = worst_slices_first(slices)
    chosen = [part for part in ordered if part.stands_out][:MOST_SLICES]
    seen = {part.comparison.metric for part in chosen}
    others: list[SliceComparison] = []
    for part in ordered[len(chosen) :]:
        if part.comparison.difference is not None:
            (others if part.comparison.metric in seen else chosen).append(part)
            seen.add(part.comparison.metric)
    return chosen, others


def headline_of_slices(slices: Sequence[SliceComparison]) -> str:
    """Return the number of slices and outcomes, in one line.

    >>> headline_of_slices([])
    'no slices'
    """
    if not slices:
        return "no slices"
    by_column: dict[str, set[str]] = {}
    for part in slices:
        by_column.setdefault(part.slice.column, set()).add(part.slice.value)
    columns = ", ".join(f"{len(values)} by {column}" for column, values in by_column.items())
    small = len({part.slice for part in slices if part.rows < SMALL_SLICE})
    small_words = f" ({small} with fewer than {SMALL_SLICE} rows)" if small else ""
    counted = count_outcomes([part.comparison for part in slices])
    return f"Slices: {columns}{small_words}; per slice and metric: {', '.join(counted)}"


def _place(part: SliceComparison) -> tuple[int, bool, float, str]:
    outcome = part.comparison.verdict
    first = _ORDER.index(outcome) if outcome in _ORDER else len(_ORDER)
    is_last = outcome is ChangeOutcome.NOT_COMPARED
    return (first + is_last, part.is_small and first == len(_ORDER), -_worsening(part.comparison), str(part.slice))


def _worsening(comparison: MetricComparison) -> float:
    if comparison.difference is None:
        return float("-inf")
    mean = comparison.difference.mean
    if comparison.direction is Direction.NEITHER:
        return abs(mean)
    return mean if comparison.direction is Direction.LOWER else -mean
