"""Find the rows that a topic, a document or a group have in common."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from metric_core.columns import EVIDENCE_SPANS, REFERENCE_CONTEXT_IDS, RETRIEVED_CONTEXT_IDS
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.robustness import Part
from metric_core.statistics.slices import NO_VALUE, OTHER_VALUES, Slice
from tasks.comparison.run_pair import RunPair, RunRows
from tasks.runs.row_grouping import ROW_ID


def find_parts(pair: RunPair) -> list[Part]:
    """Return the slices, groups and documents of the rows, without those of a single row."""
    found: dict[str, set[str]] = {}
    for sliced in pair.slices:
        for row, value in sliced.values.items():
            if value not in (NO_VALUE, OTHER_VALUES):
                found.setdefault(str(Slice(sliced.column, value)), set()).add(row)
    for row, group in pair.b.groups.items() if pair.is_grouped else ():
        found.setdefault(f"group {group}", set()).add(row)
    for row, document in _documents(pair.b):
        found.setdefault(f"document {document}", set()).add(row)
    distinct = {frozenset(rows): name for name, rows in reversed(found.items()) if len(rows) > 1}
    return [Part(name, rows) for rows, name in distinct.items()]


def _documents(rows: RunRows) -> Iterator[tuple[str, str]]:
    """Yield rows with the documents that their test rests on; without a known one, with those that were retrieved."""
    for shard in rows.samples():
        cells = (shard[name].to_pylist() for name in (ROW_ID, REFERENCE_CONTEXT_IDS, EVIDENCE_SPANS))
        retrieved = shard[RETRIEVED_CONTEXT_IDS].to_pylist()
        for row, ids, spans, fetched in zip(*cells, retrieved, strict=True):
            of_spans = [span["document"] for span in spans or () if span["document"] is not None]
            for document in dict.fromkeys(ids or of_spans or fetched or ()):
                yield row, str(document)


def leave_out(column: ScoreColumns, rows: Collection[str]) -> ScoreColumns:
    """Return the cells of a metric without some rows."""
    a, b = ({row: cell for row, cell in cells.items() if row not in rows} for cells in (column.a, column.b))
    return replace(column, a=a, b=b)
