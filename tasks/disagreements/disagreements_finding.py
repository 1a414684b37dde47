"""Show the rows of a run whose passages disagree: both places side by side, and which of them the answer follows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from metric_core.columns import RETRIEVED_CONTEXT_DATES, ColumnType
from metric_core.disagreements.answers import find_taken
from metric_core.disagreements.conflicts import Said, find_disagreements
from metric_core.evidence import Evidence, MissingProductError
from metric_core.metrics.disagreements import CONTEXT_CONFLICT, STALE_ANSWER
from metric_core.records import Sample
from metric_core.schemas import SAMPLES
from tasks.documents.blocks import Block, Line, Section, Span, Text, Tone, make_table, own
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.record.findings import FindingPart
from tasks.rows.records import read_samples_table
from tasks.runs.row_grouping import ROW_ID
from tasks.runs.run_folder import RunFolder

MOST_SHOWN = 20
"""Rows of which the places are shown."""


class DisagreementCounts(FindingPart):
    """The number of rows of a run whose passages disagree.

    Args:
        rows: Rows with passages.
        disagreeing: Those of which two passages give different values for the same thing.
        dated: Those of them that follow a passage of which is known whether it is the older one; None if not computed.
        stale: Those of them that follow the older one.
        shown: Ids of the first rows whose passages disagree.
    """

    entry: ClassVar[str] = "disagreements"

    rows: int = Field(ge=0)
    disagreeing: int = Field(ge=0)
    dated: int | None = None
    stale: int = Field(ge=0)
    shown: tuple[str, ...]


def count(rows: WrittenRows) -> Iterator[DisagreementCounts]:
    """Yield the counts of a run that computes whether passages disagree."""
    keys = {request.metric.name: request.key for request in reversed(rows.requests)}
    if CONTEXT_CONFLICT.name not in keys:
        return
    scores = {row: score.value for row, score in rows.folder.read_scores(keys[CONTEXT_CONFLICT.name])}
    stale_key = keys.get(STALE_ANSWER.name)
    stale = [] if stale_key is None else [score.value for _, score in rows.folder.read_scores(stale_key)]
    disagreeing = [row for row, value in scores.items() if value]
    yield DisagreementCounts(
        rows=sum(value is not None for value in scores.values()),
        disagreeing=len(disagreeing),
        dated=None if stale_key is None else sum(value is not None for value in stale),
        stale=sum(value == 1 for value in stale),
        shown=tuple(disagreeing[:MOST_SHOWN]),
    )


def lines(run: RunRecords) -> Iterator[str]:
    """Yield how many rows have passages that disagree, and how many answers follow the older one."""
    found = run.summary.find(DisagreementCounts)
    if found is not None and found.disagreeing:
        stale = f"; {found.stale:,} of {found.dated:,} answers follow the older one" if found.dated else ""
        yield f"passages disagree in {found.disagreeing:,} of {found.rows:,} rows{stale}"


def section(run: RunRecords) -> Sequence[Block]:
    """Return the places that disagree, side by side."""
    found = run.summary.find(DisagreementCounts)
    if found is None:
        return ()
    rows = [row for sample in _read_samples(run, found.shown) for row in _rows(sample)]
    if not rows:
        return ()
    more = found.disagreeing - len(found.shown)
    blocks: list[Block] = [Line(own(f"{text[0].upper()}{text[1:]}.")) for text in lines(run)]
    blocks.append(make_table(("row", "one passage", "the other one", "the answer follows"), rows, numbers=()))
    blocks += [Line(own(f"And {more:,} more."))] if more > 0 else []
    return [Section(own("Passages that disagree"), tuple(blocks))]


def _read_samples(run: RunRecords, row_ids: Iterable[str]) -> Iterator[Sample]:
    wanted = pa.array(row_ids, pa.string())
    for shard in RunFolder(run.folder).read_samples(SAMPLES.arrow.names):
        yield from read_samples_table(shard.filter(pc.is_in(shard[ROW_ID], value_set=wanted)))


def _rows(sample: Sample) -> Iterator[tuple[Text, ...]]:
    """Yield a row of the table for the clearest disagreement of a sample, if the run can still find it."""
    contexts = sample.retrieved_contexts or ()
    try:
        dates = Evidence(sample).own_column(RETRIEVED_CONTEXT_DATES, ColumnType.TEXTS)
    except MissingProductError:
        dates = []
    for each in find_disagreements(contexts, sample.user_input or "")[:1]:
        taken = find_taken(sample.response or "", each)
        follows = {(True, False): "the first one", (False, True): "the other one", (True, True): "both"}
        sides = (_place(said, dates if len(dates) == len(contexts) else ()) for said in (each.one, each.other))
        yield sample.row_id, *sides, own(follows.get((taken.one, taken.other), "none"))


def _place(said: Said, dates: Sequence[str]) -> Text:
    """Return what a passage says, with the part that differs marked, and its number and date."""
    before, part, after = said.statement.partition(said.part)
    marked = (before, Span(part, Tone.BAD), after) if part else (said.statement,)
    date = f", {dates[said.passage]}" if dates else ""
    return *marked, Span(f" (passage {said.passage + 1}{date})", Tone.MUTED)


DISAGREEMENTS = Finding(summary=(DisagreementCounts,), count=count, lines=lines, section=section)
