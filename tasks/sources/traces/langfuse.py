"""Read traces and observations as Langfuse exports them: from its pages, its API and to blob storage."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.sources.traces.payloads import (
    as_count,
    as_name,
    as_seconds,
    find_answer,
    find_earlier,
    find_passages,
    find_question,
    load,
    prompt_text,
)
from tasks.sources.traces.spans import Kind, Span

_KINDS = {
    **dict.fromkeys(("SPAN", "CHAIN", "AGENT"), Kind.CHAIN),
    "GENERATION": Kind.LLM,
    "RETRIEVER": Kind.RETRIEVER,
    "TOOL": Kind.TOOL,
    **dict.fromkeys(("EVENT", "EMBEDDING", "EVALUATOR", "GUARDRAIL"), Kind.OTHER),
}
_EXTRAS = (
    *(
        "environment",
        "release",
        "version",
        "tags",
        "user_id",
        "trace_name",
        "trace_tags",
        "metadata",
        "level",
        "public",
    ),
    *("bookmarked", "project_id", "total_cost", "status_message"),
)
_RERANKER = "rerank"
"""Part of the name of a reranker, which has no type of its own."""


def is_score(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a score, which exports keep beside the traces."""
    fields = _snake(record)
    return {"data_type", "value", "source", "trace_id"} <= fields.keys()


def is_observation(record: Mapping[str, Any]) -> bool:
    """Return whether a record is an observation."""
    fields = _snake(record)
    return {"id", "trace_id", "type", "start_time"} <= fields.keys() and str(fields["type"]) in _KINDS


def is_trace(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a trace, with or without its observations."""
    if isinstance(record.get("trace"), Mapping):
        return is_trace(record["trace"])
    return {"id", "timestamp"} <= record.keys() and bool({"input", "output", "observations"} & record.keys())


def read_trace(record: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the span of a trace, and those of the observations in it."""
    trace = {**record["trace"], **record} if isinstance(record.get("trace"), Mapping) else record
    fields = _snake(trace)
    observations = trace.get("observations")
    for observation in observations if isinstance(observations, list) else ():
        if isinstance(observation, Mapping):  # lists of traces have only the ids of their observations
            yield read_observation({"traceId": fields["id"], **observation})
    start = as_seconds(fields.get("timestamp"))
    seconds = _seconds(fields.get("latency"))
    span = Span(
        str(fields["id"]),
        str(fields["id"]),
        name=str(fields.get("name") or ""),
        start=start,
        end=None if start is None or seconds is None else start + seconds,
    )
    yield _fill(span, fields)


def read_observation(record: Mapping[str, Any]) -> Span:
    """Return the span of an observation. One without a parent is a part of its trace, which may not be exported."""
    fields = _snake(record)
    parent = as_name(fields.get("parent_observation_id"))
    span = Span(
        str(fields["trace_id"]),
        str(fields["id"]),
        parent or str(fields["trace_id"]),
        str(fields.get("name") or ""),
        _KINDS.get(str(fields.get("type")), Kind.OTHER),
        as_seconds(fields.get("start_time")),
        as_seconds(fields.get("end_time")),
        failed=fields.get("level") == "ERROR",
        parent_is_remote=parent is None,
    )
    return _fill(span, fields)


def _fill(span: Span, fields: Mapping[str, Any]) -> Span:
    given, made = fields.get("input"), fields.get("output")
    if span.kind is Kind.CHAIN and _is_document_list(made):
        span.kind = Kind.RETRIEVER  # as SDKs record one that have no type for it
    if span.kind in (Kind.CHAIN, Kind.RETRIEVER) and _RERANKER in span.name.casefold():
        span.kind, span.candidates = Kind.RERANKER, find_passages(given)
    span.question, span.earlier = find_question(given), find_earlier(given)
    if span.kind in (Kind.RETRIEVER, Kind.RERANKER):
        span.passages = find_passages(made)
    else:
        span.answer = find_answer(made)
    if span.kind is Kind.LLM:
        span.prompt = prompt_text(given)
    if span.kind is Kind.TOOL and made not in (None, ""):
        span.tool_results = [span.answer or str(made)]
    usage = load(fields.get("usage_details")) or load(fields.get("usage"))
    usage = _snake(usage) if isinstance(usage, Mapping) else {}
    span.prompt_tokens = _count(usage, fields, ("input", "prompt_tokens", "input_tokens"))
    span.output_tokens = _count(usage, fields, ("output", "completion_tokens", "output_tokens"))
    span.model = as_name(fields.get("provided_model_name") or fields.get("model"))
    span.session = as_name(fields.get("session_id"))
    span.extras = {name: load(fields[name]) for name in _EXTRAS if fields.get(name) not in (None, "", [], {})}
    return span


def _is_document_list(value: Any) -> bool:
    items = load(value)
    if not isinstance(items, list) or not items or not all(isinstance(item, Mapping) for item in items):
        return False
    return bool(find_passages(items)) and not any("role" in item for item in items)


def _count(usage: Mapping[str, Any], fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = [usage.get(name) for name in names] + [fields.get(name) for name in names[1:]]
    return next((count for value in values if (count := as_count(value)) is not None), None)


def _seconds(value: Any) -> float | None:
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return None


def _snake(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under the names of the blob storage exports; the API writes the same names in camel case."""
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in fields.items()}
