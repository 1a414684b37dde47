"""Judgments of texts are carried to the chunks that an index has now, and what became of them is counted."""

from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import SourceError
from metric_core.evidence_spans import SpanState
from metric_core.records import Sample
from tasks.comparison.run_differences import TEST_COLUMNS
from tasks.rows.records import read_samples_table
from tasks.runs.carried_evidence import describe_judgments, warn_about_judgments
from tasks.runs.row_changes import find_row_changes
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import read_chunks, text_id
from tasks.sources.sample_reader import SampleReader
from tests.tasks.sources.helpers import read, write_lines

FEE, DOGS = "The fee is 40 euros a year.", "Dogs are not allowed on board the ferry."
LUNCH = "Lunch is served at noon on working days."
CHUNKS: list[dict[str, Any]] = [
    {"id": "n1", "text": f"Open from nine. {FEE}", "metadata": {"document_id": "gym"}},
    {"id": "n2", "text": DOGS.replace("not ", ""), "document": "ferry"},
    {"id": "n3", "text": f"Cats travel in a box. {LUNCH}", "document": "ferry"},
]
ROW: dict[str, Any] = {
    "id": "q1",
    "user_input": "What is the fee?",
    "retrieved_contexts": [CHUNKS[0]["text"], CHUNKS[2]["text"]],
    "retrieved_context_ids": ["n1", "n3"],
}


def spans(*texts: str, document: str | None = None) -> list[dict[str, Any]]:
    return [{"text": text, "document": document, "grade": 2} for text in texts]


def read_rows(folder: Path, row: dict[str, Any], **options: Any) -> tuple[SampleReader, Sample]:
    """Return the reader of a source with one row, and the row."""
    reader, table = read(write_lines(folder / "log.jsonl", [row]), {}, **options)
    return reader, read_samples_table(table)[0]


def chunks_in(folder: Path) -> str:
    return str(write_lines(folder / "chunks.jsonl", CHUNKS))


def test_evidence_of_a_row_is_carried_to_the_chunks_of_the_index(tmp_path: Path) -> None:
    row = {
        **ROW,
        "evidence_spans": [
            *spans(FEE, document="gym"),
            *spans(DOGS, LUNCH, document="ferry"),
            *spans("Gone for good, all of it.", document="old"),
        ],
    }
    reader, sample = read_rows(tmp_path, row, chunks=chunks_in(tmp_path))
    assert sample.relevance_judgments == {"n1": 2.0, "n3": 2.0}
    states = [each.state for each in sample.evidence_spans or ()]
    assert states == [SpanState.CARRIED, SpanState.EDITED, SpanState.CARRIED, SpanState.LOST]
    assert reader.judgments is not None
    assert describe_judgments(reader.judgments) == (
        "carried 50 %, lost 25 %, 0 uncertain, 1 whose evidence was edited: q1 ('not' was removed); "
        "0 % of passages have none"
    )
    [sentence] = warn_about_judgments(reader.judgments)
    assert "with judgments=both the judge grades what was retrieved" in sentence


def test_without_the_chunks_evidence_is_found_in_what_was_retrieved(tmp_path: Path) -> None:
    reader, sample = read_rows(tmp_path, {**ROW, "evidence_spans": [FEE, DOGS]})
    assert sample.relevance_judgments == {"n1": 1.0}
    assert [each.state for each in sample.evidence_spans or ()] == [SpanState.CARRIED, SpanState.UNSEEN]
    assert reader.judgments is not None
    assert describe_judgments(reader.judgments) == (
        "carried 100 %, lost 0 %, 1 not among the retrieved passages, 0 uncertain, 0 whose evidence was edited; "
        "50 % of passages have none"
    )


def test_a_passage_with_edited_evidence_has_no_grade_whatever_else_it_holds(tmp_path: Path) -> None:
    old = [*spans(FEE.replace("40", "45")), *spans("Open from nine.")]
    _, sample = read_rows(tmp_path, {**ROW, "evidence_spans": old}, chunks=chunks_in(tmp_path))
    edited, carried = sample.evidence_spans or ()
    assert (edited.state, edited.near, carried.state) == (SpanState.EDITED, "n1", SpanState.CARRIED)
    assert sample.relevance_judgments == {}


def test_qrels_with_texts_are_carried_and_those_without_are_of_ids(tmp_path: Path) -> None:
    qrels = write_lines(
        tmp_path / "qrels.jsonl",
        [
            {"query_id": "q1", "passage_id": "old-7", "grade": 3, "text": FEE, "before": "...", "after": None},
            {"query_id": "q1", "passage_id": "old-9", "grade": 1, "text": None},
        ],
    )
    _, sample = read_rows(tmp_path, ROW, qrels=str(qrels))
    assert sample.relevance_judgments == {"old-9": 1.0, "n1": 3.0}


def test_evidence_of_key_points_is_carried_as_judgments_are(tmp_path: Path) -> None:
    points = [
        {"text": "The fee is 40 euros.", "evidence": spans(FEE, document="gym")},
        {"text": "Dogs must stay ashore.", "evidence": {"text": DOGS, "document": "ferry"}},
        {"text": "It is open all year.", "importance": "okay"},
        {"text": "There is a sauna.", "evidence": "Gone for good, all of it."},
    ]
    reader, sample = read_rows(tmp_path, {**ROW, "key_points": points}, chunks=chunks_in(tmp_path))
    found = [[each.state for each in point.evidence] for point in sample.key_points or ()]
    assert found == [[SpanState.CARRIED], [SpanState.EDITED], [], [SpanState.LOST]]
    assert [point.is_edited for point in sample.key_points or ()] == [False, True, False, False]
    assert (sample.evidence_spans, sample.relevance_judgments) == (None, None)
    assert reader.judgments is not None
    assert describe_judgments(reader.judgments).startswith(
        "carried 33 %, lost 33 %, 0 uncertain, 1 whose evidence was edited: q1 ('not' was removed)"
    )


def test_a_rebuilt_index_is_no_other_test_of_key_points(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "log.jsonl", [{**ROW, "key_points": [{"text": "40 euros.", "evidence": FEE}]}])
    before = read(source, {}, chunks=chunks_in(tmp_path))[1]
    write_lines(tmp_path / "chunks.jsonl", [{**CHUNKS[0], "id": "other"}])
    changes = find_row_changes([before], [read(source, {}, chunks=str(tmp_path / "chunks.jsonl"))[1]])
    assert changes.changed == {"q1": ("point_evidence",)}
    assert "point_evidence" not in TEST_COLUMNS


def test_judgments_of_ids_are_kept_by_the_texts_of_their_chunks(tmp_path: Path) -> None:
    _, sample = read_rows(tmp_path, {**ROW, "qrels": {"n1": 3, "elsewhere": 1}}, chunks=chunks_in(tmp_path))
    assert sample.relevance_judgments == {"elsewhere": 1.0, "n1": 3.0}
    [anchored] = sample.evidence_spans or ()
    assert (anchored.span.text, anchored.span.document, anchored.span.grade) == (CHUNKS[0]["text"], "gym", 3.0)


@pytest.mark.parametrize("with_chunks", [True, False])
def test_passages_without_ids_are_known_by_their_texts(with_chunks: bool, tmp_path: Path) -> None:
    row = {name: value for name, value in ROW.items() if name != "retrieved_context_ids"}
    options = {"chunks": chunks_in(tmp_path)} if with_chunks else {}
    _, sample = read_rows(tmp_path, {**row, "evidence_spans": [FEE]}, **options)
    name = "n1" if with_chunks else text_id(str(CHUNKS[0]["text"]))
    assert sample.relevance_judgments == {name: 1.0}
    assert (sample.retrieved_context_ids or ())[0] == name


def test_retrieved_ids_that_are_in_no_chunk_are_counted(tmp_path: Path) -> None:
    """The texts are equal, but the evidence is at the chunks, so that recall would be 0 without a word."""
    row = {**ROW, "evidence_spans": [FEE]}
    reader, _ = read_rows(tmp_path, row, chunks=chunks_in(tmp_path))
    assert not [each for each in warn_about_judgments(reader.judgments) if "retrieved ids" in each]
    for ids, known in ((["x1", "x3"], 0), (["n1", "x3"], 1)):
        reader, _ = read_rows(tmp_path, {**row, "retrieved_context_ids": ids}, chunks=chunks_in(tmp_path))
        [first, *_] = warn_about_judgments(reader.judgments)
        assert first.startswith(f"{known} of 2 retrieved ids are in chunks.jsonl: evidence is found at its chunks")


def test_two_chunks_with_one_id_are_refused(tmp_path: Path) -> None:
    """Recall would be 1 for a passage with the id of the evidence and another text."""
    repeated = write_lines(tmp_path / "repeated.jsonl", [*CHUNKS, CHUNKS[0]])
    assert len(list(read_chunks(str(repeated)))) == 4, "the same chunk twice is no contradiction"
    twice = str(write_lines(tmp_path / "twice.jsonl", [*CHUNKS, {"id": "n1", "text": "Another text."}]))
    with pytest.raises(SourceError, match=r"line 4: another chunk with another text has the id 'n1', too"):
        read_rows(tmp_path, {**ROW, "evidence_spans": [FEE]}, chunks=twice)


def test_rows_without_evidence_are_read_as_before(tmp_path: Path) -> None:
    reader, sample = read_rows(tmp_path, ROW)
    assert (sample.evidence_spans, sample.relevance_judgments, reader.judgments) == (None, None, None)
    assert list(warn_about_judgments(reader.judgments)) == []


def test_chunks_are_read_in_the_forms_of_indexes(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "page_content": "One.", "metadata": {"source": "a.md", "start": 3, "end": 7}},
        {"text": "Two.", "document": "b.md", "start": "0", "end": "4"},
    ]
    assert list(read_chunks(str(write_lines(tmp_path / "chunks.jsonl", rows)))) == [
        Chunk("7", "One.", "a.md", 3, 7),
        Chunk(text_id("Two."), "Two.", "b.md", 0, 4),
    ]
    write_lines(tmp_path / "chunks.jsonl", [{"id": 7}])
    with pytest.raises(SourceError, match="line 1: no text of a chunk, wanted a column page_content"):
        list(read_chunks(str(tmp_path / "chunks.jsonl")))
    write_lines(tmp_path / "chunks.jsonl", [{"text": "One.", "start": 2**63 - 1}])
    with pytest.raises(SourceError, match="line 1: the start of the chunk is the number 9223372036854775807, wanted"):
        list(read_chunks(str(tmp_path / "chunks.jsonl")))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("text", "got the text 'text', wanted a list of texts"),
        ([7], "span 1 is the number 7, wanted a list of texts"),
        ([{"document": "a"}], "the text of span 1 is null, wanted one that is not blank"),
        ([{"text": "It rains.", "start": 1.5}], "the start of span 1 is the number 1.5, wanted a whole number"),
        ([{"text": "It rains.", "end": 2**63}], "the end of span 1 is the number 9223372036854775808, wanted a whole"),
        ([{"text": "It rains.", "end": "9" * 5000}], "the end of span 1 is the text '999"),
        ([{"text": "It rains.", "start": 1e300}], "the start of span 1 is the number 1"),
        ([{"text": "It rains.", "grade": "high"}], "the grade is the text 'high', wanted a finite number"),
    ],
)
def test_other_forms_of_evidence_are_refused(given: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=problem):
        read_rows(tmp_path, {**ROW, "evidence_spans": given})
