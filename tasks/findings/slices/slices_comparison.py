"""Compare the slices of two runs."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pyarrow as pa

from metric_core.statistics.slice_comparison import SliceComparison, compare_slices
from tasks.comparison.run_comparison import RunComparison
from tasks.documents.blocks import Block, Line, Section, Table, Text, Tone, make_table, own
from tasks.documents.comparison.comparison_table import SCHEMA, row_of
from tasks.documents.comparison.comparison_words import EXTRA, NUMBERS, describe_verdict, numbers, title
from tasks.documents.html import to_html
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.parts import Templated
from tasks.findings.slices.slices_view import shorten_value
from tasks.findings.slices.slices_words import choose_slices, headline_of_slices

_MOST_SLICES = 100
_COLUMNS = pa.schema([("column", pa.string()), ("value", pa.string()), *SCHEMA])


@dataclass(frozen=True, slots=True)
class ComparedSlices:
    """The comparisons of metrics in each slice."""

    entry: ClassVar[str] = "slices"

    slices: tuple[SliceComparison, ...]

    def to_json(self) -> list[Any]:
        """Return the comparisons."""
        return [asdict(each) for each in self.slices]


def compare(rows: ComparedRows) -> ComparedSlices | None:
    """Return the comparisons of the metrics that both runs have; None without slices."""
    shared = [column for column in rows.columns if column.a and column.b]
    found = tuple(compare_slices(shared, rows.pair.slices, rows.seed))
    return ComparedSlices(found) if found else None


def slices_of(comparison: RunComparison) -> tuple[SliceComparison, ...]:
    """Return the comparisons of metrics in each slice; none without slices."""
    found = comparison.find(ComparedSlices)
    return () if found is None else found.slices


def tables(comparison: RunComparison) -> Iterator[Block]:
    """Yield the slices below the metrics."""
    if slices := slices_of(comparison):
        yield Section(headline_of_slices(slices), tuple(slice_blocks(slices, _MOST_SLICES)))


def section(comparison: RunComparison, _on_page: Collection[str]) -> Templated | None:
    """Return the section of the page; None without slices."""
    slices = slices_of(comparison)
    if not slices:
        return None
    content = {"slices": to_html(slice_blocks(slices, None), "Slices"), "slices_headline": headline_of_slices(slices)}
    return Templated("slices/comparison.html.j2", content)


def table(comparison: RunComparison) -> pa.Table:
    """Return a row per slice, metric and scale, with the columns of `metrics_table`."""
    rows = [
        {"column": part.slice.column, "value": part.slice.value, **row_of(part.comparison)}
        for part in slices_of(comparison)
    ]
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def slice_blocks(slices: Sequence[SliceComparison], most: int | None) -> Iterator[Block]:
    """Yield the slices: first those that stand out and the worst of each other metric, then the others.

    Args:
        most: Maximum number of the others; None for all.
    """
    chosen, others = choose_slices(slices)
    yield _slice_table(chosen)
    yield Line(own("p after Holm's correction over all slices and metrics.", Tone.MUTED))
    if others:
        left = len(others) - len(others[:most])
        more = [Line(own(f"{left:,} more are in the page and in the JSON."))] if left else []
        title = own(f"{len(others):,} more slices and metrics")
        yield Section(title, (_slice_table(others[:most]), *more), is_folded=True, is_long=True)


def _slice_table(parts: Iterable[SliceComparison]) -> Table:
    rows: list[tuple[Text, ...]] = [
        (
            shorten_value(str(part.slice)),
            title(part.comparison),
            *numbers(part.comparison),
            describe_verdict(part.comparison, ", small" * part.is_small),
        )
        for part in parts
    ]
    return make_table(("slice", "metric", *NUMBERS, "outcome"), rows, NUMBERS, ("A", "B", *EXTRA))


COMPARISON = FindingComparison(compare=compare, tables=tables, section=section, table=table)
