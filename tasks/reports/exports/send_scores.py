"""Send the scores of a run to an OTLP endpoint: as events of the GenAI conventions, or as OpenInference evaluations.

An event `gen_ai.evaluation.result` (a log record) belongs to the span that it evaluates, and needs no trace. An
OpenInference evaluation is an attribute of a span: each row gets a span of the kind EVALUATOR, in a trace of its own,
with exactly one link, to the span that it evaluates. Ended spans and their traces stay as they are.
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
https://github.com/Arize-ai/openinference/blob/main/spec/annotations.md
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from metric_core.errors import ConfigError, MissingDependencyError
from metric_core.records import Status
from tasks.options.otlp_endpoint import check_endpoint
from tasks.reports.exports.scored_rows import ScoredRow, read_scored_rows
from tasks.reports.exports.sink import Sink, SinkError
from tasks.runtime.release import version

_BATCH = 500
_TRACE, _SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_EXPORTERS = "opentelemetry.exporter.otlp.proto.http"
_ERROR = "_OTHER"
"""Value of `error.type` for a cell that failed. Its reason may be any text, and the convention wants few values."""

B = TypeVar("B")


class Form(StrEnum):
    """Form in which scores are sent."""

    EVENTS = "events"
    EVALUATIONS = "evaluations"


@dataclass(slots=True)
class SentScores:
    """Counts of what was sent.

    Args:
        cells: Cells that were sent; with events, failed ones too.
        unscored: Cells that were left out because they have no value.
        untraced: Rows whose trace, or for evaluations whose span, is not known: they were left out of evaluations, and
            their events name no span.
    """

    cells: int = 0
    unscored: int = 0
    untraced: int = 0

    def __str__(self) -> str:
        """Return the counts in words.

        >>> str(SentScores(8, 1))
        '8 scores; left out: 1 without a value'
        """
        words = f"{self.cells} scores"
        if self.unscored:
            words += f"; left out: {self.unscored} without a value"
        return words + (f"; rows whose trace is not known: {self.untraced}" if self.untraced else "")


def check_packages() -> None:
    """Check that the packages for sending scores are installed.

    Raises:
        MissingDependencyError: One of them is not; the message says how to install it.
    """
    for package in ("opentelemetry.exporter.otlp.proto.http", "openinference.semconv"):
        with _needed_packages():
            import_module(package)


def send_scores(rows: Iterable[ScoredRow], endpoint: str, form: Form, run: str, timeout: float = 10.0) -> SentScores:
    """Send the scores of a run, and wait until the endpoint has accepted them.

    Headers, such as keys, and certificates are read from the environment variables of OpenTelemetry
    (`OTEL_EXPORTER_OTLP_HEADERS`).

    Args:
        endpoint: Base URL of the endpoint; `/v1/logs` or `/v1/traces` is added.
        timeout: Seconds that the endpoint may take for a request, with retries.

    Returns:
        What was sent and what was left out.

    Raises:
        SinkError: The endpoint cannot be reached or refuses the scores; the message says how many rows it has.
        MissingDependencyError: OpenTelemetry is not installed.
    """
    base = check_endpoint(endpoint).rstrip("/")
    sent = SentScores()
    send = _event_sender(base, run, timeout, sent) if form is Form.EVENTS else _span_sender(base, run, timeout, sent)
    done = 0
    for batch in _batches(rows, _BATCH):
        if problem := send(batch):
            raise SinkError(f"the scores of {done} rows were sent to {base}, and then it failed: {problem}")
        done += len(batch)
    return sent


def _event_sender(base: str, run: str, timeout: float, sent: SentScores) -> Callable[[Sequence[ScoredRow]], str | None]:
    with _needed_packages():
        from opentelemetry._logs import LogRecord, SeverityNumber  # noqa: PLC0415 of an extra
        from opentelemetry.context import Context  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415
        from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415
        from opentelemetry.sdk._logs.export import (  # noqa: PLC0415
            InMemoryLogRecordExporter,
            LogRecordExportResult,
            SimpleLogRecordProcessor,
        )
        from opentelemetry.trace import NonRecordingSpan, set_span_in_context  # noqa: PLC0415

    exporter = OTLPLogExporter(endpoint=f"{base}/v1/logs", timeout=timeout)
    kept = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider(resource=_resource(run), shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(kept))
    logger = provider.get_logger("rag-assay", version())

    def send(rows: Sequence[ScoredRow]) -> str | None:
        for row in rows:
            target = _target_of(row)
            sent.untraced += target is None
            context = Context() if target is None else set_span_in_context(NonRecordingSpan(target))
            for attributes in _event_attributes(row, sent):
                logger.emit(
                    LogRecord(
                        timestamp=time.time_ns(),
                        context=context,
                        severity_number=SeverityNumber.INFO,
                        event_name="gen_ai.evaluation.result",
                        attributes=attributes,
                    )
                )
        records = kept.get_finished_logs()
        kept.clear()
        return _export(lambda: exporter.export(records) is LogRecordExportResult.SUCCESS) if records else None

    return send


def _event_attributes(row: ScoredRow, sent: SentScores) -> Iterator[dict[str, Any]]:
    for cell in row.cells:
        if cell.status is Status.UNDEFINED:
            sent.unscored += 1
            continue
        sent.cells += 1
        attributes = {
            "gen_ai.evaluation.name": cell.metric,
            "gen_ai.evaluation.score.value": cell.value,
            "gen_ai.evaluation.score.label": cell.label,
            "gen_ai.evaluation.explanation": cell.explanation,
            "gen_ai.response.id": row.response_id,
            "gen_ai.conversation.id": row.session_id,
            "error.type": None if cell.is_scored else _ERROR,
            "rag_assay.reason": None if cell.is_scored else cell.reason,
            "rag_assay.row_id": row.row_id,
        }
        yield {name: value for name, value in attributes.items() if value is not None}


def _span_sender(base: str, run: str, timeout: float, sent: SentScores) -> Callable[[Sequence[ScoredRow]], str | None]:
    with _needed_packages():
        import openinference.semconv.trace  # noqa: F401, PLC0415 of an extra
        from opentelemetry.context import Context  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult  # noqa: PLC0415
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON  # noqa: PLC0415
        from opentelemetry.trace import Link  # noqa: PLC0415

    exporter = OTLPSpanExporter(endpoint=f"{base}/v1/traces", timeout=timeout)
    kept = InMemorySpanExporter()
    # Each evaluation has several attributes, and one beyond the usual limit would be cut in two.
    limits = SpanLimits(max_span_attributes=SpanLimits.UNSET)
    provider = TracerProvider(ALWAYS_ON, _resource(run), shutdown_on_exit=False, span_limits=limits)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("rag-assay", version())

    def send(rows: Sequence[ScoredRow]) -> str | None:
        for row in rows:
            target = _target_of(row)
            if target is None or not target.is_valid:
                sent.untraced += 1
                continue
            sent.cells += len(row.scored)
            sent.unscored += len(row.cells) - len(row.scored)
            if row.scored:
                links, attributes = [Link(target)], _span_attributes(row, run)
                tracer.start_span("rag-assay", Context(), attributes=attributes, links=links).end()
        spans = kept.get_finished_spans()
        kept.clear()
        return _export(lambda: exporter.export(spans) is SpanExportResult.SUCCESS) if spans else None

    return send


def _span_attributes(row: ScoredRow, run: str) -> dict[str, Any]:
    from openinference.semconv.trace import (  # noqa: PLC0415 of an extra
        EvaluationAttributes,
        OpenInferenceAnnotatorKindValues,
        OpenInferenceSpanKindValues,
        SpanAttributes,
    )

    kinds = {True: OpenInferenceAnnotatorKindValues.LLM.value, False: OpenInferenceAnnotatorKindValues.CODE.value}
    attributes: dict[str, Any] = {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.EVALUATOR.value,
        SpanAttributes.METADATA: json.dumps({"row_id": row.row_id, "run": run}),
    }
    for index, cell in enumerate(row.scored):
        fields = {
            EvaluationAttributes.EVALUATION_NAME: cell.metric,
            EvaluationAttributes.EVALUATION_SCORE: cell.value,
            EvaluationAttributes.EVALUATION_LABEL: cell.label,
            EvaluationAttributes.EVALUATION_EXPLANATION: cell.explanation,
            EvaluationAttributes.EVALUATION_ANNOTATOR_KIND: kinds[cell.language_model],
            EvaluationAttributes.EVALUATION_IDENTIFIER: run,
        }
        for name, value in fields.items():
            if value is not None:
                attributes[f"{SpanAttributes.EVALUATIONS}.{index}.{name}"] = value
    return attributes


def _target_of(row: ScoredRow) -> Any:
    """Return the context of the span that a row evaluates, invalid if only its trace is known; None if neither is."""
    from opentelemetry import trace as api  # noqa: PLC0415 of an extra

    trace = (row.trace_id or "").replace("-", "").lower()
    span = (row.span_id or "").lower()
    if not _TRACE.fullmatch(trace):
        return None
    span_id = int(span, 16) if _SPAN.fullmatch(span) else api.INVALID_SPAN_ID
    sampled = api.TraceFlags(api.TraceFlags.SAMPLED)
    return api.SpanContext(int(trace, 16), span_id, is_remote=True, trace_flags=sampled)


def _resource(run: str) -> Any:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 of an extra

    return Resource.create({"service.name": "rag-assay", "service.version": version(), "rag_assay.run": run})


@contextmanager
def _needed_packages() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingDependencyError(package, "sending scores", "pip install 'rag-assay[traces]'") from error


_GAVE_UP = "due to timeout, max retries or shutdown"
_RETRIES = ", retrying in"
_ERRNO = re.compile(r"\[Errno -?\d+\] ([\w ]+)")


def _export(export: Callable[[], bool]) -> str | None:
    """Return why an export failed, which exporters only log; None if it succeeded."""
    said = _LastReason()
    logger = logging.getLogger(_EXPORTERS)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(said)
    try:
        return None if export() else said.text.rstrip(". ")
    finally:
        logger.removeHandler(said)
        logger.propagate = propagated


class _LastReason(logging.Handler):
    """A handler that keeps the last message that says why an export failed."""

    text = "the endpoint does not say why"

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, unless it only says that the exporter has given up."""
        message = record.getMessage()
        if _GAVE_UP not in message:
            refused = _ERRNO.search(message)
            self.text = f"it cannot be reached: {refused[1]}" if refused else message.partition(_RETRIES)[0]


def _batches(items: Iterable[B], size: int) -> Iterator[list[B]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _check(endpoint: str) -> None:
    try:
        check_endpoint(endpoint)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_packages()


def _sink(form: Form) -> Sink:
    def send(endpoint: str, folder: Path) -> str:
        return str(send_scores(read_scored_rows(folder), endpoint, form, folder.name))

    return Sink(_check, send)


OTLP, OPENINFERENCE = _sink(Form.EVENTS), _sink(Form.EVALUATIONS)
