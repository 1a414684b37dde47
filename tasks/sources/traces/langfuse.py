"""Read traces and observations as Langfuse exports them: from its pages, its API and to blob storage."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.sources.traces.spans import Kind, Span
from tasks.sources.traces.steps import fill_step
from tasks.sources.traces.values import as_count, as_name, as_seconds, parse_literal

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
_OBSERVED = frozenset({"parent_observation_id", "end_time", "level", "model", "provided_model_name", "usage_details"})
"""Fields of observations alone, by which one without a type is known."""
_CALLED = ("model", "provided_model_name", "usage_details", "usage", "model_parameters")
"""Fields that only calls of models have a value for."""


def is_score(record: Mapping[str, object]) -> bool:
    """Return whether a record is a score, which exports keep beside the traces."""
    fields = _snake(record)
    return {"data_type", "value", "source", "trace_id"} <= fields.keys()


def is_observation(record: Mapping[str, object]) -> bool:
    """Return whether a record is an observation."""
    fields = _snake(record)
    if not {"id", "trace_id", "start_time"} <= fields.keys():
        return False
    kind = as_name(fields.get("type"))
    return str(kind).upper() in _KINDS or (kind is None and bool(_OBSERVED & fields.keys()))


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


def read_observation(record: Mapping[str, object]) -> Span:
    """Return the span of an observation. One without a parent is a part of its trace, which may not be exported."""
    fields = _snake(record)
    parent = as_name(fields.get("parent_observation_id"))
    span = Span(
        str(fields["trace_id"]),
        str(fields["id"]),
        parent or str(fields["trace_id"]),
        str(fields.get("name") or ""),
        _kind(fields),
        as_seconds(fields.get("start_time")),
        as_seconds(fields.get("end_time")),
        failed=fields.get("level") == "ERROR",
        parent_is_remote=parent is None,
    )
    return _fill(span, fields)


def _kind(fields: Mapping[str, object]) -> Kind:
    """Return the kind of an observation; of one without a type, whether a model was called."""
    if (kind := as_name(fields.get("type"))) is not None:
        return _KINDS.get(kind.upper(), Kind.OTHER)
    return Kind.LLM if any(parse_literal(fields.get(name)) not in (None, "", {}) for name in _CALLED) else Kind.CHAIN


def _fill(span: Span, fields: Mapping[str, object]) -> Span:
    fill_step(span, fields.get("input"), fields.get("output"))
    usage = parse_literal(fields.get("usage_details")) or parse_literal(fields.get("usage"))
    usage = _snake(usage) if isinstance(usage, Mapping) else {}
    span.prompt_tokens = _count(usage, fields, ("input", "prompt_tokens", "input_tokens"))
    span.output_tokens = _count(usage, fields, ("output", "completion_tokens", "output_tokens"))
    span.model = as_name(fields.get("provided_model_name") or fields.get("model"))
    span.session = as_name(fields.get("session_id"))
    span.extras = {name: parse_literal(fields[name]) for name in _EXTRAS if fields.get(name) not in (None, "", [], {})}
    return span


def _count(usage: Mapping[str, object], fields: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    values = [usage.get(name) for name in names] + [fields.get(name) for name in names[1:]]
    return next((count for value in values if (count := as_count(value)) is not None), None)


def _seconds(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _snake(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return fields under the names of the blob storage exports; the API writes the same names in camel case."""
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in str(name)): value for name, value in fields.items()}
