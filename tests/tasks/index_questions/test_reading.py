"""Chunks are read in the forms that indexes are dumped in; questions, from the file that holds them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import SourceError
from metric_core.evidence_spans import EvidenceSpan
from tasks.index_questions.evidence import carry_questions
from tasks.index_questions.question_file import read_questions, retired_file, write_questions
from tasks.index_questions.written_question import WrittenQuestion
from tasks.options.source_options import SourceOptions
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import read_chunks


def read(path: Path, rows: list[Mapping[str, Any]], **options: Any) -> list[Chunk]:
    """The chunks of rows in a JSONL file."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return list(read_chunks(str(path), None, SourceOptions(**options)))


@pytest.mark.parametrize(
    ("row", "options", "expected"),
    [
        ({"id": "a#1", "text": "Rain."}, {}, ("a", None, None)),
        ({"id": "a", "content": "Rain.", "title": "Weather"}, {}, (None, None, "Weather")),
        ({"page_content": "Rain.", "metadata": {"source": "a.md", "start_index": 7}}, {}, ("a.md", 7, None)),
        ({"id_": "n1", "text": "Rain.", "metadata": {"file_name": "a.md"}}, {}, ("a.md", None, None)),
        ({"text": "Rain."}, {}, (None, None, None)),
        ({"body": "Rain.", "doc_id": 5}, {"column_map": {"body": "retrieved_contexts"}}, ("5", None, None)),
        ({"hit": {"body": "Rain."}}, {"column_map": {"hit.body": "retrieved_contexts"}}, (None, None, None)),
        ({"contexts": ["Rain."], "retrieved_context_ids": ["a#2"]}, {}, ("a", None, None)),
        (
            {"user_input": "?", "retrieved_contexts": [{"id": "a#1", "text": "Rain.", "score": 1.0}]},
            {},
            ("a", None, None),
        ),
    ],
)
def test_a_chunk_has_its_text_document_start_and_title(
    tmp_path: Path, row: Mapping[str, Any], options: Mapping[str, Any], expected: tuple[Any, ...]
) -> None:
    (chunk,) = read(tmp_path / "chunks.jsonl", [row], **options)
    assert (chunk.text, chunk.document, chunk.start, chunk.title) == ("Rain.", *expected)


def test_a_row_without_a_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"line 1: no text of a chunk.*'body'.*--column-map"):
        read(tmp_path / "chunks.jsonl", [{"body": "Rain."}])


def question(text: str) -> WrittenQuestion:
    """A question with evidence."""
    return WrittenQuestion(
        "single_fact", text, "Rain.", ("Rain.",), (EvidenceSpan("Rain.", "a", 1, 6),), ("d",), "U", "1"
    )


def test_retired_questions_are_set_aside_until_they_are_asked_again(tmp_path: Path) -> None:
    path, first, second = tmp_path / "out" / "questions.jsonl", question("What?"), question("Why?")
    write_questions(path, [first, second], [], "1")
    assert not retired_file(path).exists()
    write_questions(path, [first], [(second, "its evidence is gone")], "2")
    assert read_questions(path) == [first]
    path.write_text(f"\ufeff{path.read_text(encoding='utf-8')}", encoding="utf-8")  # as an editor of Windows saves it
    assert read_questions(path) == [first]
    (row,) = map(json.loads, retired_file(path).read_text(encoding="utf-8").splitlines())
    assert (row["id"], row["retired"], row["why"]) == (second.id, "2", "its evidence is gone")
    write_questions(path, [first, second], [], "3")
    assert (read_questions(path), retired_file(path).read_text(encoding="utf-8")) == ([first, second], "")


def test_a_question_is_the_same_when_its_evidence_has_another_form(tmp_path: Path) -> None:
    path, first = tmp_path / "questions.jsonl", question("What?")
    (chunk,) = read(tmp_path / "chunks.jsonl", [{"id": "a#1", "text": "It says: **Rain**, and snow"}])
    write_questions(path, [first], [], "1")
    for version in ("2", "3"):
        (kept,) = carry_questions(read_questions(path), [chunk]).kept
        write_questions(path, [kept], [], version)
    (row,) = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (kept.spans[0].text, row["reference_contexts"]) == ("Rain**,", first.to_row()["reference_contexts"])


@pytest.mark.parametrize("line", ['{"user_input": "What?"}', "[]", "{"])
def test_a_file_of_other_rows_is_not_overwritten(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(SourceError, match=r"line 1: not a question that .* another --out would"):
        write_questions(path, read_questions(path), [], "1")
    assert path.read_text(encoding="utf-8") == line
