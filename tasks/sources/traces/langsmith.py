"""Read runs as LangSmith exports them: bulk exports in Parquet, and JSON Lines or CSV of its pages and its client."""

import re
from collections.abc import Iterator, Mapping

from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.traces.spans import Kind, Span
from tasks.sources.traces.steps import fill_step
from tasks.sources.traces.values import as_count, as_name, as_seconds, parse_literal

_KINDS = {
    "chain": Kind.CHAIN,
    "llm": Kind.LLM,
    "retriever": Kind.RETRIEVER,
    "tool": Kind.TOOL,
    **dict.fromkeys(("embedding", "prompt", "parser"), Kind.OTHER),
}
_THREAD_KEYS = ("session_id", "thread_id", "conversation_id")
"""Keys of the metadata that name the thread. The field session_id of a run is its project."""
_MODEL_KEYS = ("ls_model_name", "model", "model_name")
_EXTRAS = ("tags", "status", "error", "total_cost", "session_name", "reference_example_id")
_ORDER = re.compile(r"[^.Z]*Z(?P<id>[0-9a-fA-F-]{36})(?:\.|$)")


def is_run(record: Mapping[str, object]) -> bool:
    """Return whether a record is a run."""
    return {"id", "run_type"} <= record.keys()


def read_langsmith_run(record: Mapping[str, object]) -> Iterator[Span]:
    """Yield the span of a run, and those of the runs in it.

    Raises:
        InvalidRowError: The run has no id.
    """
    run_id = as_name(record["id"])
    if run_id is None:
        raise InvalidRowError("a run has no id")
    parent = as_name(record.get("parent_run_id"))
    trace_id = as_name(record.get("trace_id")) or _first_id(record) or (run_id if parent is None else None)
    if trace_id is None:
        raise InvalidRowError("a run has neither trace_id nor dotted_order, so that its trace is not known")
    span = Span(
        trace_id,
        run_id,
        parent,
        str(record.get("name") or ""),
        _KINDS.get(str(record.get("run_type")), Kind.CHAIN),
        as_seconds(record.get("start_time")),
        as_seconds(record.get("end_time")),
        failed=record.get("error") not in (None, "") or record.get("status") == "error",
    )
    yield _fill(span, record)
    children = record.get("child_runs")
    for child in children if isinstance(children, list) else ():
        if isinstance(child, Mapping) and is_run(child):
            yield from read_langsmith_run({"trace_id": trace_id, "parent_run_id": run_id, **child})


def _fill(span: Span, record: Mapping[str, object]) -> Span:
    fill_step(span, parse_literal(record.get("inputs")), parse_literal(record.get("outputs")))
    extra = parse_literal(record.get("extra"))
    extra = extra if isinstance(extra, Mapping) else {}
    metadata = parse_literal(extra.get("metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    called = extra.get("invocation_params")
    called = {**(called if isinstance(called, Mapping) else {}), **metadata}
    span.model = next((name for key in _MODEL_KEYS if (name := as_name(called.get(key)))), None)
    span.session = next((name for key in _THREAD_KEYS if (name := as_name(metadata.get(key)))), None)
    span.prompt_tokens = as_count(record.get("prompt_tokens"))
    span.output_tokens = as_count(record.get("completion_tokens"))
    span.extras = {name: parse_literal(record[name]) for name in _EXTRAS if record.get(name) not in (None, "", [], {})}
    if metadata:
        span.extras["metadata"] = metadata
    return span


def _first_id(record: Mapping[str, object]) -> str | None:
    """Return the first id of the dotted order, which is that of the trace."""
    found = _ORDER.match(str(record.get("dotted_order") or ""))
    return None if found is None else found["id"]
