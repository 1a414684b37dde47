"""Show the retrievals of answers that were retrieved for several times: what each found, and which lost something."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.columns import HOPS
from metric_core.records import Side, VerdictKind
from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.documents.blocks import Block, Line, Section, make_table, own
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.hops.row_hops import Hop, RowHops, describe_hops, find_facts, read_hops
from tasks.record.findings import FindingPart
from tasks.record.part import Part
from tasks.rows.records import read_samples_table
from tasks.runs.row_grouping import ROW_ID
from tasks.runs.run_folder import RunFolder, table_name


class HopCount(Part):
    """Counts of the first, second, ... retrieval of rows.

    Args:
        rows: Rows that have it.
        passages: Passages that it found.
        useful: Those of them that state a needed fact.
        repeated: Those of them that a retrieval before it found.
        new: Needed facts that no retrieval before it found.
        lost: Rows in which it is the first that lost a needed fact.
    """

    rows: int = 0
    passages: int = 0
    useful: int = 0
    repeated: int = 0
    new: int = 0
    lost: int = 0


class HopCounts(FindingPart):
    """Counts of the rows of a run with several retrievals.

    Args:
        rows: Rows with several retrievals.
        known: Those of them of which it is known what they needed.
        lost: Those of them in which a needed fact was found by no retrieval.
        hops: Counts of each retrieval, in order.
    """

    entry: ClassVar[str] = "hops"

    rows: int
    known: int
    lost: int
    hops: tuple[HopCount, ...]


def count(rows: WrittenRows) -> Iterator[HopCounts]:
    """Yield the counts of a run in which rows have several retrievals."""
    found = [*_read_rows(rows.folder)]
    if not found:
        return
    most = max(len(row.hops) for row in found)
    yield HopCounts(
        rows=len(found),
        known=sum(row.needed > 0 for row in found),
        lost=sum(row.first_lost is not None or bool(row.unasked) for row in found),
        hops=tuple(_count_hop(number, found) for number in range(1, most + 1)),
    )


def _count_hop(number: int, rows: Sequence[RowHops]) -> HopCount:
    hops = [row.hops[number - 1] for row in rows if len(row.hops) >= number]
    return HopCount(
        rows=len(hops),
        passages=sum(len({*hop.passages}) for hop in hops),
        useful=sum(hop.useful for hop in hops),
        repeated=sum(hop.repeated for hop in hops),
        new=sum(len(hop.new) for hop in hops),
        lost=sum(row.first_lost == number for row in rows),
    )


def _read_rows(folder: RunFolder, ids: Collection[str] | None = None) -> Iterator[RowHops]:
    """Yield the rows with several retrievals, or those with some ids."""
    for shard in folder.read_samples(SAMPLES.arrow.names):
        table = shard.filter(pc.match_substring(pc.fill_null(shard["extras"], ""), f'"{HOPS}"'))
        if ids is not None:
            table = table.filter(pc.is_in(table[ROW_ID], value_set=pa.array(ids, pa.string())))
        recorded = [(sample, hops) for sample in read_samples_table(table) if (hops := read_hops(sample))]
        names = [sample.row_id for sample, _ in recorded]
        claims, verdicts = _read_claims(folder.path, names), _read_verdicts(folder.path, names)
        for sample, hops in recorded:
            facts = find_facts(sample, claims.get(sample.row_id, {}), verdicts.get(sample.row_id, {}))
            yield describe_hops(sample.row_id, hops, facts)


def _read_claims(folder: Path, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the key points of rows, or the claims of their references, by row and claim."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in _read(folder, Stage.CLAIMS, names, side=[Side.KEY_POINT, Side.REFERENCE]):
        if row["claim_id"] is not None and row["text"] is not None:
            found.setdefault(row["row_id"], {}).setdefault(row["side"], {})[row["claim_id"]] = row["text"]
    return {name: sides.get(Side.KEY_POINT) or sides[Side.REFERENCE] for name, sides in found.items()}


def _read_verdicts(folder: Path, names: Sequence[str]) -> dict[str, dict[tuple[str, str], int]]:
    found: dict[str, dict[tuple[str, str], int]] = {}
    for row in _read(folder, Stage.VERDICTS, names, kind=[VerdictKind.SUPPORT, VerdictKind.FULL_SUPPORT]):
        if row["verdict"] is not None:
            found.setdefault(row["row_id"], {})[row["claim_id"], row["premise"]] = row["verdict"]
    return found


def _read(folder: Path, stage: Stage, names: Sequence[str], **values: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a stage's table about some samples; none if the run lacks the stage."""
    path = folder / table_name(stage)
    if not names or not path.is_file():
        return []
    filters = [(ROW_ID, "in", [*names]), *((name, "in", [*map(str, each)]) for name, each in values.items())]
    rows: list[dict[str, Any]] = pq.read_table(path, filters=filters, partitioning=None).to_pylist()
    return rows


def lines(run: RunRecords) -> Iterator[str]:
    """Yield which retrieval lost what answers needed."""
    if (found := run.summary.find(HopCounts)) is not None:
        yield f"hops: {_sentence(found)}"


def _sentence(found: HopCounts) -> str:
    count = found.known or found.rows
    rows = f"{count:,} row{'' if count == 1 else 's'} with several retrievals"
    if not found.known:
        return f"{rows}; what each had to find is not known (`assay docs hops`)"
    by = [f"by retrieval {number} in {hop.lost:,}" for number, hop in enumerate(found.hops, start=1) if hop.lost]
    return f"of {rows}, {found.lost:,} lost what the answer needed{', first ' if by else ''}{', '.join(by)}"


def section(run: RunRecords) -> Sequence[Block]:
    """Return what each retrieval found and lost over all rows."""
    found = run.summary.find(HopCounts)
    if found is None:
        return ()
    names = ("rows", "passages", "useful", "repeated", "new", "lost")
    table = [
        (str(number), *(f"{getattr(hop, name):,}" for name in names)) for number, hop in enumerate(found.hops, start=1)
    ]
    heading = (
        "retrieval",
        "rows",
        "passages",
        "state a needed fact",
        "found before",
        "facts found first",
        "rows it lost first",
    )
    text = _sentence(found)
    return [Section(own("Hops"), (Line(own(f"{text[0].upper()}{text[1:]}.")), make_table(heading, table)))]


def parts_of_rows(run: RunRecords, ids: Sequence[str]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that returns the retrievals of a row in order, for its place in the report."""
    found = {row.row_id: row for row in _read_rows(RunFolder(run.folder), ids)}

    def describe(sample: Mapping[str, Any]) -> Mapping[str, Any]:
        row = found.get(sample[ROW_ID])
        if row is None:
            return {}
        hops = enumerate(row.hops, start=1)
        items = [f"{number}. {_describe(hop, is_known=row.needed > 0)}" for number, hop in hops]
        items += [f"No query is about a fact that was not found: {fact}" for fact in row.unasked]
        return {"parts": [{"title": "Retrievals in order", "items": items}]}

    return describe


def _describe(hop: Hop, *, is_known: bool) -> str:
    query = "query not recorded" if hop.query is None else f"“{hop.query}”"
    places = ", ".join(str(place + 1) for place in hop.passages) or "none"
    notes = [f"passages {places}"]
    notes += [f"{hop.repeated} of them found before"] if hop.repeated else []
    notes += [f"{hop.dropped} more dropped by a reranker"] if hop.dropped else []
    notes += [f"{hop.useful} of them with a needed fact"] if is_known else []
    notes += [f"found first: {fact.rstrip('.')}" for fact in hop.new]
    notes += [f"LOST: {fact.rstrip('.')}" for fact in hop.lost]
    return f"{query}: {'; '.join(notes)}"


HOPS_FINDING = Finding(summary=(HopCounts,), count=count, lines=lines, section=section, rows=parts_of_rows)
