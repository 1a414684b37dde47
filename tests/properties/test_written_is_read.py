"""Every format of rag-assay is read back equal to what was written, for every character that it can hold.

JSON holds all code points, halves of surrogate pairs included; files in UTF-8 and Parquet hold all others.
"""

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from deployments.cli.init import to_toml
from deployments.trace_receiver.trace_files import JSON, TraceFiles
from flows.alerting.alert import Alert
from flows.alerting.recipients import FileRecipient
from metric_core.evidence_spans import EvidenceSpan
from tasks.calibration.label_store import LabelPageFacts, StoredLabel, find_labels, keep_labels, read_exported
from tasks.index_questions.question_file import read_questions, retired_file, write_questions
from tasks.index_questions.written_question import WrittenQuestion
from tasks.reports.exports.qrels_table import QRELS, write_qrels
from tasks.reports.exports.score_tables import Format, write_export
from tasks.runs.outcome import RunOutcome, read_outcome, write_outcome
from tasks.runs.run_folder import MANIFEST, RunFolder
from tasks.runtime.atomic_files import write_output
from tasks.runtime.jsonl_text import to_json_lines
from tasks.sources.in_memory import save_rows
from tasks.sources.location import open_file, open_source
from tasks.sources.qrels_file import read_qrels
from tests.tasks.sources.traces.builders import Recorder, otlp_json, read_traces

AT_ONCE = 4096
SURROGATES = range(0xD800, 0xE000)
ENDS = "\t\n\v\f\r \x00\x1a\x1c\x1d\x1e\x1f\x7f\x85\xa0\u2028\u2029\u3000\ufeff\"',;|\\"
"""Characters that end lines or cells, that are stripped from the ends of texts, or that are quoted."""
ROUND = (*(f"{char}middle{char}" for char in ENDS), "a\r\nb", "line\rline", "\\u2028", "1e308")
SCALARS = (
    *ROUND,
    *(
        "".join(chr(point) for point in range(first, first + AT_ONCE) if point not in SURROGATES) or "none"
        for first in range(0, 0x110000, AT_ONCE)
    ),
)
HALVES = tuple(f"half {chr(point)} a pair" for point in (0xD800, 0xDBFF, 0xDC00, 0xDC80, 0xDFFF))

Texts = Sequence[str]
RoundTrip = Callable[[Path, Texts], Texts]


def _question(text: str) -> WrittenQuestion:
    span = EvidenceSpan(text, "document", 0, len(text), 1.0, text, text)
    return WrittenQuestion("single_fact", text, text, (text,), (span,), (text,), text, text)


def live_questions(folder: Path, texts: Texts) -> Texts:
    path = folder / "questions.jsonl"
    write_questions(path, map(_question, texts), (), "1")
    read = read_questions(path)
    assert read == [*map(_question, texts)]
    return [question.question for question in read]


def retired_questions(folder: Path, texts: Texts) -> Texts:
    path = folder / "questions.jsonl"
    for part in (texts[::2], texts[1::2]):  # the second time adds to the first
        write_questions(path, (), ((_question(text), text) for text in part), "1")
    found = {question.question for question in read_questions(retired_file(path))}
    return [text for text in texts if text in found]


def exported_labels(folder: Path, texts: Texts) -> Texts:
    """The page writes lines with JSON.stringify, which leaves U+2028 as it is."""
    facts = {"run": "r", "metric": "m", "sample": "s", "frame": "f", "is_final": False, "answers": (0.0, 1.0)}
    page = LabelPageFacts(**facts, items=tuple((text, 1.0, text) for text in texts)).digest  # type: ignore[arg-type]
    labels = [
        {"item": text, "annotator": "anna", "label": 1, "labelled_at": "2026-11-28T12:00:00+00:00"}
        | {"probability": 1, "stratum": text, **facts, "page": page}
        for text in texts
    ]
    path = folder / "labels.jsonl"
    path.write_text(to_json_lines(labels), encoding="utf-8", newline="\n")
    return [label.item for label in read_exported(path, "m")]


def stored_labels(folder: Path, texts: Texts) -> Texts:  # noqa: ARG001
    time = "2026-11-28T12:00:00+00:00"
    keep_labels([StoredLabel(text, "anna", 1.0, time, "sample", "frame", 1.0, text) for text in texts], [])
    found = {label.item: label.stratum for label in find_labels(texts)}
    return [str(found[text]) for text in texts]


def rows_of_python(folder: Path, texts: Texts) -> Texts:
    path = save_rows([{"response": text} for text in texts], str(folder))
    return [row.content["response"] for row in open_source(path).rows(10) if isinstance(row.content, dict)]


def export_of(file_format: Format) -> RoundTrip:
    def write_and_read(folder: Path, texts: Texts) -> Texts:
        path = folder / f"scores.{file_format}"
        write_export(pa.table({"row_id": [*map(str, range(len(texts)))], "text": texts}), path, file_format)
        return [row.content["text"] for row in open_source(str(path)).rows(10) if isinstance(row.content, dict)]

    return write_and_read


def qrels_table(file_format: Format) -> RoundTrip:
    def write_and_read(folder: Path, texts: Texts) -> Texts:
        path = folder / f"qrels.{file_format}"
        rows = [
            {"query_id": str(n), "passage_id": "p", "grade": 1.0, "source": "given", "text": text}
            for n, text in enumerate(texts)
        ]
        write_export(pa.Table.from_pylist(rows, schema=QRELS), path, file_format)
        found = read_qrels(open_file(str(path)))
        return [found[str(number)].spans[0].text for number in range(len(texts))]

    return write_and_read


def qrels_of_trec(folder: Path, texts: Texts) -> Texts:
    """An id with white space is refused, see `write_qrels`."""
    ids = ["".join(text.split()) for text in texts]
    rows = [{"query_id": f"q{n}", "passage_id": name, "grade": 1.0, "source": "given"} for n, name in enumerate(ids)]
    write_qrels(pa.Table.from_pylist(rows, schema=QRELS), folder / "qrels.txt")
    found = read_qrels(open_file(str(folder / "qrels.txt")))
    read = [next(iter(found[f"q{number}"].grades)) for number in range(len(ids))]
    return [text if name == own else name for text, own, name in zip(texts, ids, read, strict=True)]


def run_manifest(folder: Path, texts: Texts) -> Texts:
    RunFolder(folder).write_json(MANIFEST, {"texts": list(texts)})
    return [*RunFolder(folder).read_json(MANIFEST)["texts"]]


def outcome(folder: Path, texts: Texts) -> Texts:
    read = []
    for text in texts:
        write_outcome(folder, RunOutcome(name="a", trigger="schedule", message=text))
        found = read_outcome(folder)
        assert found is not None
        read.append(found.message)
    return read


def alerts(folder: Path, texts: Texts) -> Texts:
    for text in texts:
        FileRecipient(folder / "alerts.jsonl").send(Alert(name=text, outcome="attention", flow_run="r"))
    lines = (folder / "alerts.jsonl").read_bytes().split(b"\n")
    return [json.loads(line)["name"] for line in lines if line]


def received_traces(folder: Path, texts: Texts) -> Texts:
    files = TraceFiles(folder, 10**9)
    for text in texts:
        recorder = Recorder()
        with recorder.tracer.start_as_current_span("rag") as span:
            span.set_attributes({"openinference.span.kind": "CHAIN", "input.value": text, "output.value": "So."})
            span.set_attribute("input.mime_type", "text/plain")  # without it, a text in quotes may be JSON
        files.append(JSON, json.dumps(otlp_json(recorder.spans), ensure_ascii=False).encode())
    return [row["user_input"] for row in read_traces(folder)[1]]


def configuration(folder: Path, texts: Texts) -> Texts:
    path = folder / "assay.toml"
    write_output(
        path, "".join(f"t{number} = {to_toml(text)}\n" for number, text in enumerate(texts)), "the configuration"
    )
    return [*tomllib.loads(path.read_text(encoding="utf-8")).values()]


IN_JSON = {
    "questions": live_questions,
    "retired questions": retired_questions,
    "run.json": run_manifest,
    "outcome.json": outcome,
}
IN_UTF8 = {
    "labels of a page": exported_labels,
    "stored labels": stored_labels,
    "rows of Python": rows_of_python,
    **{f"exported {each}": export_of(each) for each in Format},
    **{f"qrels as {each}": qrels_table(each) for each in Format},
    "qrels of TREC": qrels_of_trec,
    "alerts": alerts,
    "traces": received_traces,
    "configuration": configuration,
}


@pytest.mark.parametrize("name", [*IN_JSON, *IN_UTF8])
def test_every_character_is_read_as_it_was_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    write_and_read = {**IN_JSON, **IN_UTF8}[name]
    texts = (*SCALARS, *HALVES) if name in IN_JSON else SCALARS
    read = write_and_read(tmp_path, texts)
    assert len(read) == len(texts)
    for written, found in zip(texts, read, strict=True):
        assert found == written, f"{written[:60]!a} became {found[:60]!a}"
