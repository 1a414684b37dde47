"""Scores at an OTLP endpoint: events and evaluations, what is left out, and what happens if the endpoint fails."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import MissingDependencyError
from metric_core.records import Status
from metric_core.stages import Stage
from tasks.reports.exports.scored_rows import Cell, ScoredRow, read_scored_rows
from tasks.reports.exports.send_scores import Form, send_scores
from tasks.reports.exports.sink import SinkError
from tests.tasks.reports import folders
from tests.tasks.reports.exports.otlp_receiver import OtlpReceiver, attributes_of
from tests.tasks.sources.traces.builders import Recorder, otlp, read_traces

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SCORED = Cell("faithfulness", Status.SCORED, 0.5, None, None, "half of it", language_model=True)
LABELLED = Cell("tone", Status.SCORED, None, "formal", None)
FAILED = Cell("answer_relevancy", Status.FAILED, None, None, "no usable reply from the judge")
UNDEFINED = Cell("context_recall", Status.UNDEFINED, None, None, "no reference")
ROW = ScoredRow("a", (SCORED, LABELLED, FAILED, UNDEFINED), TRACE, SPAN, "s1", "resp-1")


@pytest.fixture
def receiver() -> Any:
    with OtlpReceiver() as endpoint:
        yield endpoint


def test_every_scored_or_failed_cell_is_an_event_of_its_span(receiver: OtlpReceiver) -> None:
    sent = send_scores([ROW], f"{receiver.url}/", Form.EVENTS, "nightly")
    assert (sent.cells, sent.unscored, sent.untraced) == (3, 1, 0)
    assert {record.event_name for record in receiver.logs} == {"gen_ai.evaluation.result"}
    assert {(record.trace_id.hex(), record.span_id.hex()) for record in receiver.logs} == {(TRACE, SPAN)}
    common = {"gen_ai.response.id": "resp-1", "gen_ai.conversation.id": "s1", "rag_assay.row_id": "a"}
    assert [attributes_of(record) for record in receiver.logs] == [
        {
            "gen_ai.evaluation.name": "faithfulness",
            "gen_ai.evaluation.score.value": 0.5,
            "gen_ai.evaluation.explanation": "half of it",
            **common,
        },
        {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "formal", **common},
        {
            "gen_ai.evaluation.name": "answer_relevancy",
            "error.type": "_OTHER",
            "rag_assay.reason": "no usable reply from the judge",
            **common,
        },
    ]
    assert receiver.services == {"rag-assay"}


def test_a_row_without_a_trace_is_an_event_by_itself_and_no_evaluation(receiver: OtlpReceiver) -> None:
    rows = [ScoredRow("b", (SCORED,)), ScoredRow("c", (SCORED,), trace_id="run 7", span_id="x")]
    assert str(send_scores(rows, receiver.url, Form.EVENTS, "r")) == "2 scores; rows whose trace is not known: 2"
    assert {record.trace_id for record in receiver.logs} == {b""}
    rows.append(ScoredRow("d", (SCORED,), TRACE, TRACE))
    assert send_scores(rows, receiver.url, Form.EVALUATIONS, "r").untraced == 3
    assert receiver.spans == []


def test_a_trace_of_another_kind_of_span_ids_still_names_the_trace(receiver: OtlpReceiver) -> None:
    uuid = "0af76519-16cd-43dd-8448-eb211c80319c"
    send_scores([ScoredRow("b", (SCORED,), uuid, uuid)], receiver.url, Form.EVENTS, "r")
    assert receiver.logs[0].trace_id.hex() == TRACE


def test_a_row_without_a_score_is_no_evaluation(receiver: OtlpReceiver) -> None:
    sent = send_scores([ScoredRow("b", (UNDEFINED,), TRACE, SPAN)], receiver.url, Form.EVALUATIONS, "r")
    assert (sent.cells, sent.unscored, receiver.spans) == (0, 1, [])


def test_an_evaluation_is_a_span_that_links_to_the_one_that_answered(receiver: OtlpReceiver) -> None:
    sent = send_scores([ROW], receiver.url, Form.EVALUATIONS, "nightly")
    assert (sent.cells, sent.unscored, sent.untraced) == (2, 2, 0)
    (span,) = receiver.spans
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in span.links] == [(TRACE, SPAN)]
    assert span.trace_id.hex() != TRACE
    assert span.parent_span_id == b""
    attributes = attributes_of(span)
    assert json.loads(attributes.pop("metadata")) == {"row_id": "a", "run": "nightly"}
    assert attributes == {
        "openinference.span.kind": "EVALUATOR",
        "evaluations.0.evaluation.name": "faithfulness",
        "evaluations.0.evaluation.score": 0.5,
        "evaluations.0.evaluation.explanation": "half of it",
        "evaluations.0.evaluation.annotator_kind": "LLM",
        "evaluations.0.evaluation.identifier": "nightly",
        "evaluations.1.evaluation.name": "tone",
        "evaluations.1.evaluation.label": "formal",
        "evaluations.1.evaluation.annotator_kind": "CODE",
        "evaluations.1.evaluation.identifier": "nightly",
    }


def test_each_row_of_a_trace_is_evaluated_by_a_span_of_its_own(receiver: OtlpReceiver) -> None:
    others = [ScoredRow(str(number), (SCORED,), TRACE, f"{number:016x}") for number in (1, 2)]
    send_scores([ROW, *others], receiver.url, Form.EVALUATIONS, "r")
    assert len({span.trace_id for span in receiver.spans}) == 3
    assert [link.span_id.hex() for span in receiver.spans for link in span.links] == [SPAN, f"{1:016x}", f"{2:016x}"]


@pytest.mark.parametrize("name", ["OTEL_TRACES_SAMPLER", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"])
def test_no_evaluation_is_cut_or_left_out(name: str, receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, {"OTEL_TRACES_SAMPLER": "always_off"}.get(name, "3"))
    cells = tuple(Cell(f"metric-{number}", Status.SCORED, 0.5, None, None) for number in range(60))
    send_scores([ScoredRow("a", cells, TRACE, SPAN)], receiver.url, Form.EVALUATIONS, "r")
    (span,) = receiver.spans
    attributes = attributes_of(span)
    assert [attributes[f"evaluations.{number}.evaluation.name"] for number in range(60)] == [
        cell.metric for cell in cells
    ]
    assert sum(name.endswith(".score") for name in attributes) == 60


def test_evaluations_that_are_read_as_traces_are_no_rows(receiver: OtlpReceiver, tmp_path: Path) -> None:
    send_scores([ROW], receiver.url, Form.EVALUATIONS, "nightly")
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("rag") as span:
        span.set_attributes({"input.value": "Why?", "output.value": "So."})
    request = otlp(recorder.spans)
    request.resource_spans.add().scope_spans.add().spans.extend(receiver.spans)
    (tmp_path / "traces.pb").write_bytes(request.SerializeToString())
    reader, rows = read_traces(tmp_path / "traces.pb")
    assert [row["response"] for row in rows] == ["So."]
    assert (reader.bad_rows, reader.warnings) == (
        [],
        ["1 trace of evaluators, prompts, indexing and the like alone is not read"],
    )


@pytest.mark.parametrize("form", Form)
def test_an_endpoint_that_refuses_says_so_and_how_many_rows_it_has(form: Form) -> None:
    rows = [ScoredRow(str(i), (SCORED,), TRACE, SPAN) for i in range(700)]
    with OtlpReceiver(accepts=1) as endpoint, pytest.raises(SinkError, match=r"scores of 500 rows were sent .*400"):
        send_scores(rows, endpoint.url, form, "r")


def test_an_endpoint_that_cannot_be_reached_is_named() -> None:
    message = r"0 rows were sent to http://127\.0\.0\.1:9, .* it cannot be reached: Connection refused$"
    with pytest.raises(SinkError, match=message):
        send_scores([ROW], "http://127.0.0.1:9", Form.EVENTS, "r", timeout=1.5)


def test_headers_come_from_the_environment(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=abc")
    send_scores([ROW], receiver.url, Form.EVENTS, "r")
    assert receiver.headers[0]["x-api-key"] == "abc"


def test_without_the_extra_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("opentelemetry.exporter"):
            raise ModuleNotFoundError(name=name)
        return load(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[traces\]'"):
        send_scores([ROW], "http://localhost:4318", Form.EVENTS, "r")


@pytest.mark.parametrize("url", ["localhost:4318", "http://me:pw@host", "http://host?key=pw"])
def test_an_address_that_cannot_be_used_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ValueError, match="OTLP endpoint") as caught:
        send_scores([ROW], url, Form.EVENTS, "r")
    assert "pw" not in str(caught.value)


def test_rows_of_a_run_have_their_scores_and_traces(tmp_path: Path) -> None:
    sample = {
        "row_id": "a",
        "row_number": 1,
        "user_input": "When?",
        "session_id": "s1",
        "extras": json.dumps({"trace_id": TRACE, "span_id": SPAN, "response_id": 7}),
    }
    scores = {"a": folders.SCORES["good"], "b": folders.SCORES["empty"]}
    rows = [sample, {"row_id": "b", "row_number": 2, "user_input": "Who?"}]
    judge = {"judge": {"language_model": True, "note": "", "backend": "server", "model": "m", "revision": ""}}
    metrics = {name: entry for name, entry in folders.METRICS.items() if name != "nv_accuracy"}
    run = folders.write_run(tmp_path / "run", scores, {Stage.SAMPLES: rows}, metrics, {"status": "completed", **judge})
    first, second = read_scored_rows(run)
    assert (first.trace_id, first.span_id, first.session_id, first.response_id) == (TRACE, SPAN, "s1", "7")
    by_metric = {cell.metric: cell for cell in first.cells}
    assert by_metric["faithfulness"].value == 1.0
    assert by_metric["faithfulness"].language_model
    assert not by_metric["context_entity_recall"].language_model
    assert by_metric["house_style"].label == "formal"
    assert (second.trace_id, second.session_id) == (None, None)
    assert {cell.status for cell in second.cells} == {Status.FAILED, Status.UNDEFINED}
