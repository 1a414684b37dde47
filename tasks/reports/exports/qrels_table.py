"""Export the relevance judgments of a run as qrels: those that were given, and grades that the judge made."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from metric_core.errors import ConfigError
from metric_core.evidence_spans import PlacedSpan
from metric_core.metrics.graded_rankings import GIVEN, JUDGE, is_passage_template, ranked_passages
from metric_core.records import AnswerStatus, Sample, Score
from metric_core.stages import Stage
from tasks.rows.records import add_missing_columns
from tasks.runs.run_folder import STAGES, RunFolder
from tasks.runs.run_tables import read_table
from tasks.runtime.atomic_files import write_output
from tasks.sources.chunk_file import text_id

QRELS = pa.schema(
    [
        pa.field("query_id", pa.string(), nullable=False),
        pa.field("passage_id", pa.string(), nullable=False),
        pa.field("grade", pa.float64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("document", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
    ]
)
"""Columns of exported qrels. `query_id` is the row id, `source` is `given` or `judge`.

`text` is the judged text, with its place in its document and the words beside it; null for a passage of which the run
has no text."""

_SAMPLE_COLUMNS = ("row_id", "retrieved_contexts", "retrieved_context_ids", "relevance_judgments", "evidence_spans")


def read_qrels_of_run(folder: Path, *, with_texts: bool = True) -> pa.Table:
    """Return the judgments of a run, one row per question and passage; a given grade goes before one of the judge.

    Args:
        with_texts: True for the judged texts: the spans of evidence instead of the passages that hold them. Those
            whose evidence is edited, uncertain or lost are left out.

    Raises:
        RunFolderError: The folder does not hold a finished run.
        ConfigError: The run has no judgments, or its passages have no ids.
    """
    RunFolder(folder).read_finished_record()
    samples = read_table(folder, f"{STAGES}/{Stage.SAMPLES}.parquet")
    samples = add_missing_columns(samples, Stage.SAMPLES, _SAMPLE_COLUMNS)
    made = _grades_of_judge(folder)
    rows: list[dict[str, Any]] = []
    has_nameless = False
    for sample in samples.to_pylist():
        query = sample["row_id"]
        given = {each["id"]: each["grade"] for each in sample["relevance_judgments"] or ()}
        texts = _texts(sample) if with_texts else {}
        spans = [PlacedSpan.from_json(each) for each in sample["evidence_spans"] or ()] if with_texts else []
        placed = {part.passage for span in spans for part in span.parts}
        rows += [_span_row(query, span) for span in spans if span.counts]
        rows += [_row(query, passage, grade, GIVEN, texts) for passage, grade in given.items() if passage not in placed]
        grades = made.get(query, {})
        has_nameless = has_nameless or bool(grades and sample["retrieved_context_ids"] is None)
        rows += [
            _row(query, passage, grade, JUDGE, texts)
            for passage, grade in _by_id(sample, grades)
            if passage not in given
        ]
    if not rows and has_nameless:
        raise ConfigError("the passages of the run have no ids (retrieved_context_ids), which qrels are made of")
    if not rows:
        raise ConfigError(
            "the run has no relevance judgments; a metric such as ndcg(judgments=judge) has the judge make them"
        )
    return pa.Table.from_pylist(rows, schema=QRELS)


def write_qrels(table: pa.Table, target: Path | IO[bytes]) -> None:
    """Write qrels in the form of TREC: `QUERY 0 PASSAGE GRADE`, one per line.

    Raises:
        RunFolderError: The file cannot be written.
        ConfigError: An id is empty or has white space, or a grade is not a whole number, which TREC cannot hold.
    """
    lines = []
    for row in table.to_pylist():
        for name in ("query_id", "passage_id"):
            if row[name].split() != [row[name]]:
                raise ConfigError(f"the {name} {row[name]!r} has white space or is empty; write qrels as CSV instead")
        if row["grade"] != int(row["grade"]):
            raise ConfigError(f"the grade {row['grade']:g} is not a whole number; write qrels as CSV instead")
        lines.append(f"{row['query_id']} 0 {row['passage_id']} {int(row['grade'])}\n")
    text = "".join(lines)
    if not isinstance(target, Path):
        target.write(text.encode())
        return
    write_output(target, text, "the judgments")


def _row(query: str, passage: str, grade: float, source: str, texts: Mapping[str, str]) -> dict[str, Any]:
    row = {"query_id": query, "passage_id": passage, "grade": grade, "source": source}
    return {**row, "text": texts.get(passage) or None}


def _span_row(query: str, placed: PlacedSpan) -> dict[str, Any]:
    """Return the judgment of a span, with the passage that holds most of it."""
    best = max(placed.parts, key=lambda part: part.end - part.start, default=None)
    name = text_id(placed.span.text) if best is None else best.passage
    return {"query_id": query, "passage_id": name, "source": GIVEN, **placed.span.to_json()}


def _texts(sample: Mapping[str, Any]) -> dict[str, str]:
    ids, texts = sample["retrieved_context_ids"] or (), sample["retrieved_contexts"] or ()
    return dict(zip(reversed(ids), reversed(texts), strict=True)) if len(ids) == len(texts) else {}


def _grades_of_judge(folder: Path) -> dict[str, dict[str, float]]:
    """Return the grades that the judge gave, by row and name of the question."""
    if not (folder / STAGES / f"{Stage.RATINGS}.parquet").exists():
        return {}
    grades: dict[str, dict[str, float]] = {}
    columns = ("row_id", "template", "value", "status")
    for row in read_table(folder, f"{STAGES}/{Stage.RATINGS}.parquet").select(columns).to_pylist():
        is_answered = row["status"] == AnswerStatus.ANSWERED and row["value"] is not None
        if is_answered and is_passage_template(row["template"]):
            grades.setdefault(row["row_id"], {})[row["template"]] = float(row["value"])
    return grades


def _by_id(row: Mapping[str, Any], grades: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    """Yield the ids of the passages that the judge graded."""
    if not grades or row["retrieved_context_ids"] is None:
        return
    sample = Sample(
        retrieved_contexts=tuple(row["retrieved_contexts"] or ()),
        retrieved_context_ids=tuple(row["retrieved_context_ids"]),
    )
    passages = ranked_passages(sample, JUDGE)
    for passage in () if isinstance(passages, Score) else passages:
        if passage.template in grades:
            yield passage.key, grades[passage.template]
