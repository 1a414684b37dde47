"""Show the rows of a run whose passages disagree: both places side by side, and which of them the answer follows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field

from metric_core.columns import RETRIEVED_CONTEXT_DATES, ColumnType
from metric_core.disagreements.answers import find_taken
from metric_core.disagreements.conflicts import Said, find_disagreements
from metric_core.evidence import Evidence, MissingProductError
from metric_core.metrics.disagreements import CONTEXT_CONFLICT, STALE_ANSWER, pair_of
from metric_core.prompts.judge_questions import YES
from metric_core.records import Sample
from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.documents.blocks import Block, Line, Section, Span, Text, Tone, make_table, own
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.record.findings import FindingPart
from tasks.rows.records import read_samples_table
from tasks.runs.row_grouping import ROW_ID
from tasks.runs.run_folder import STAGES, RunFolder
from tasks.runtime.wording import shorten

MOST_SHOWN = 20
"""Rows of which the places are shown."""
_LONGEST = 300
"""Characters of a passage that are shown if the judge found a disagreement, which names no sentence."""


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
    judged = _read_judged(run, found.shown)
    rows = [row for sample in _read_samples(run, found.shown) for row in _rows(sample, judged.get(sample.row_id))]
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


def _read_judged(run: RunRecords, row_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the first pair of passages of each row that the judge found to disagree."""
    asked = [each.key for each in run.record.metrics if each.name == CONTEXT_CONFLICT.name and each.parameters["pairs"]]
    if not (asked and row_ids):
        return {}
    is_found = pc.field("metric").isin(asked) & (pc.field("value") == YES) & pc.field(ROW_ID).isin(row_ids)
    path = run.folder / STAGES / f"{Stage.RATINGS}.parquet"
    found = pq.read_table(path, columns=[ROW_ID, "template"], filters=is_found).to_pylist()
    return {row[ROW_ID]: pair_of(row["template"]) for row in reversed(found)}


def _rows(sample: Sample, judged: tuple[int, int] | None) -> Iterator[tuple[Text, ...]]:
    """Yield a row of the table for the clearest disagreement of a sample, if the run can still find it."""
    contexts = sample.retrieved_contexts or ()
    try:
        dates = Evidence(sample).own_column(RETRIEVED_CONTEXT_DATES, ColumnType.TEXTS)
    except MissingProductError:
        dates = []
    dates = dates if len(dates) == len(contexts) else []
    found = find_disagreements(contexts, sample.user_input or "")
    for each in found[:1]:
        taken = find_taken(sample.response or "", each)
        follows = {(True, False): "the first one", (False, True): "the other one", (True, True): "both"}
        sides = (_place(said, dates) for said in (each.one, each.other))
        yield sample.row_id, *sides, own(follows.get((taken.one, taken.other), "none"))
    if judged is not None and not found:
        sides = ((shorten(contexts[index], _LONGEST), _at(index, dates)) for index in judged)
        yield sample.row_id, *sides, own("the judge found this")


def _place(said: Said, dates: Sequence[str]) -> Text:
    """Return what a passage says, with the part that differs marked, and its number and date."""
    before, part, after = said.statement.partition(said.part)
    marked = (before, Span(part, Tone.BAD), after) if part else (said.statement,)
    return *marked, _at(said.passage, dates)


def _at(passage: int, dates: Sequence[str]) -> Span:
    date = f", {dates[passage]}" if dates else ""
    return Span(f" (passage {passage + 1}{date})", Tone.MUTED)


DISAGREEMENTS = Finding(summary=(DisagreementCounts,), count=count, lines=lines, section=section)
