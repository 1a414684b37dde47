"""The slices of a run for its report, for terminals and for notebooks: the worst first, and which are small."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from metric_core.records import Direction
from metric_core.statistics.slice_summary import ColumnSummary, SlicedMetric, SliceSummary
from metric_core.statistics.slices import NO_VALUE, OTHER_VALUES, SMALL_SLICE, Slice
from metric_core.statistics.summary import Distribution
from tasks.documents.blocks import Block, Line, Section, Span, Text, Tone, make_table, own
from tasks.documents.run.summary_rows import LOWER_IS_BETTER

MOST_LINES = 20
"""Maximum number of slices to show because they are worse."""

LONGEST_VALUE = 80
"""Maximum number of characters of a value."""

_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("column", "value", "metric", "scale")),
        *((name, pa.float64()) for name in ("mean", "low", "high")),
        *((name, pa.int64()) for name in ("rows", "scored", "undefined", "failed")),
        ("is_small", pa.bool_()),
        ("is_worse", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class SliceLine:
    """A metric over the rows of a slice.

    Args:
        scale: Scale of the values; None if the metric has one scale.
        counts: Number of cells scored, undefined and failed.
        distribution: Distribution of the values; None without any.
        is_worse: True if it is worse than the other rows by more than chance; None if that was not tested.
    """

    slice: Slice
    metric: str
    direction: Direction
    scale: str | None
    rows: int
    counts: tuple[int, int, int]
    distribution: Distribution | None
    is_small: bool
    is_worse: bool | None

    @property
    def name(self) -> str:
        """The metric, with the scale if rows have different ones."""
        return self.metric if self.scale is None else f"{self.metric} on {self.scale}"

    @property
    def badness(self) -> float | None:
        """The mean, with the sign by which more is worse; None without a mean or a direction."""
        if self.distribution is None or self.direction is Direction.NEITHER:
            return None
        mean = self.distribution.mean
        return mean if self.direction is Direction.LOWER else -mean

    @property
    def order(self) -> tuple[bool, bool, float, int]:
        """Key by which the worst slices of a metric come first, and small ones last."""
        badness = self.badness
        return (not self.is_worse, self.is_small, 0.0 if badness is None else -badness, -self.rows)


def read_lines(column: ColumnSummary) -> list[SliceLine]:
    """Return the metrics of all slices of a column, in the order of the slices and of the metrics."""
    return [
        line
        for one in column.slices
        for metric in one.metrics
        for line in _lines(Slice(column.column, one.value), one, metric)
    ]


def worst_lines_first(lines: Sequence[SliceLine]) -> list[SliceLine]:
    """Return lines of one metric, the worst first.

    Slices that are worse than the other rows by more than chance come first, then the others, then small ones; each by
    the mean.
    """
    return sorted(lines, key=lambda line: line.order)


def describe_column(column: ColumnSummary) -> str:
    """Return a sentence on the number and the size of the slices of a column.

    >>> describe_column(ColumnSummary("topic", 2, 0, (SliceSummary("x", 9, True, ()),)))
    '1 slice by topic, 1 with fewer than 30 rows'
    """
    slices = column.slices
    small = sum(one.is_small for one in slices)
    parts = [f"{len(slices)} slice{'s' * (len(slices) != 1)} by {column.column}"]
    if small:
        parts.append(f"{small} with fewer than {SMALL_SLICE} rows")
    if column.merged:
        parts.append(f"the {column.merged:,} rarest values together as {OTHER_VALUES}")
    missing = next((one.rows for one in slices if one.value == NO_VALUE), 0)
    if missing:
        parts.append(f"{missing:,} row{'s' * (missing != 1)} without a value as {NO_VALUE}")
    return ", ".join(parts)


def slice_blocks(columns: Iterable[ColumnSummary]) -> Iterator[Block]:
    """Yield the slices of a run for terminals: those worse than the other rows, and the worst of each metric."""
    for column in columns:
        lines = _choose_lines(read_lines(column))
        headings = (f"worst by {column.column}", "metric", "mean", "95 % interval", "rows")
        words = "worse than the other rows by more than chance, over all slices and metrics"
        note = f"! {words}" if any(line.is_worse for line in lines) else f"none is {words}"
        table = make_table(headings, map(_cells, lines), headings[2:])
        yield Section(describe_column(column), (table, Line(own(note, Tone.MUTED))))


def shorten_value(value: str) -> str:
    r"""Return the value of a slice as one line that is not too long.

    >>> shorten_value("a\nb" + "c" * 80)[-4:]
    'ccc…'
    """
    plain = " ".join(value.split())
    return plain if len(plain) <= LONGEST_VALUE else f"{plain[:LONGEST_VALUE]}…"


def _choose_lines(lines: Sequence[SliceLine]) -> list[SliceLine]:
    by_metric: dict[str, list[SliceLine]] = {}
    for line in lines:
        if line.badness is not None:
            by_metric.setdefault(line.name, []).append(line)
    ordered = [worst_lines_first(found) for found in by_metric.values()]
    worse = [line for found in ordered for line in found if line.is_worse][:MOST_LINES]
    return [*worse, *(found[0] for found in ordered if found[0] not in worse)]


def _cells(line: SliceLine) -> list[Text]:
    distribution = line.distribution
    interval = None if distribution is None else distribution.interval
    arrow = f" {LOWER_IS_BETTER}" if line.direction is Direction.LOWER else ""
    tone = Tone.BAD if line.is_worse else Tone.MUTED if line.is_small else Tone.PLAIN
    cells = (
        f"{'! ' if line.is_worse else ''}{shorten_value(line.slice.value)}",
        f"{line.name}{arrow}",
        "-" if distribution is None else f"{distribution.mean:.3f}",
        f"{interval.low:.3f} to {interval.high:.3f}" if interval else "-",
        f"{line.rows:,}{' (small)' if line.rows < SMALL_SLICE else ''}",
    )
    return [Span(cell, tone) for cell in cells]


def slice_scores_table(columns: Iterable[ColumnSummary]) -> pa.Table:
    """Return a row per slice, metric and scale."""
    rows = []
    for column in columns:
        for line in read_lines(column):
            distribution = line.distribution
            interval = None if distribution is None else distribution.interval
            counts = dict(zip(("scored", "undefined", "failed"), line.counts, strict=True))
            rows.append(
                {
                    "column": line.slice.column,
                    "value": line.slice.value,
                    "mean": None if distribution is None else distribution.mean,
                    "low": None if interval is None else interval.low,
                    "high": None if interval is None else interval.high,
                    **{name: getattr(line, name) for name in ("metric", "scale", "rows", "is_small", "is_worse")},
                    **counts,
                }
            )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _lines(part: Slice, one: SliceSummary, metric: SlicedMetric) -> Iterator[SliceLine]:
    for scale, distribution in metric.scales.items() or [(None, metric.distribution)]:
        yield SliceLine(
            slice=part,
            metric=metric.metric,
            direction=metric.direction,
            scale=scale,
            rows=one.rows,
            counts=(metric.scored, metric.undefined, metric.failed),
            distribution=distribution,
            is_small=one.is_small,
            is_worse=None if metric.rest is None else metric.rest.is_worse,
        )
