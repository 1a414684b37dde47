"""Select traces: by attributes and time, one of each question, and a sample that is stable as traces are added."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from metric_core import columns as c
from tasks.options.trace_options import TraceSettings, parse_since
from tasks.sources.cells.paths import MISSING, parse_path, read_path
from tasks.sources.traces.assembly import Trace

_CONTENT = (c.USER_INPUT, c.RESPONSE, c.RETRIEVED_CONTEXTS)


def select(
    traces: Sequence[Trace], settings: TraceSettings, now: datetime | None = None
) -> tuple[list[Trace], list[str]]:
    """Return the selected traces, and a sentence for each rule that left some out.

    Args:
        traces: Traces in the order of their starts. Those without a row are left out by their time alone.
        settings: Which traces to select.
        now: Time that durations count back from; None for the current one.
    """
    notes: list[str] = []
    chosen = list(traces)

    def keep(kept: list[Trace], rule: str) -> None:
        nonlocal chosen
        if len(kept) < len(chosen):
            notes.append(f"{len(chosen) - len(kept):,} of {len(chosen):,} traces are left out by {rule}")
        chosen = kept

    if settings.since is not None:
        start = parse_since(settings.since, now or datetime.now(UTC)).timestamp()
        keep([trace for trace in chosen if trace.start >= start and math.isfinite(trace.start)], "since")
    without = [trace for trace in chosen if not trace.rows]
    chosen = [trace for trace in chosen if trace.rows]
    if settings.where:
        keep([trace for trace in chosen if _fits(trace, settings.where)], "where")
    if settings.deduplicate != "off":
        keep(_deduplicate(chosen, settings.deduplicate), f"deduplicate = {settings.deduplicate}")
    if settings.sample is not None:
        keep(_sample(chosen, settings.sample, settings.seed), "sample")
    return [*chosen, *without], notes


def _fits(trace: Trace, where: Mapping[str, object]) -> bool:
    return any(all(_equals(row, name, wanted) for name, wanted in where.items()) for row in trace.rows)


def _equals(columns: Mapping[str, object], name: str, wanted: Any) -> bool:
    value: Any = columns.get(name, MISSING)
    if value is MISSING and (steps := parse_path(name)) is not None:
        value = read_path(columns, steps)
    if value is MISSING:
        return False
    accepted = {_text(each) for each in (wanted if isinstance(wanted, list | tuple) else [wanted])}
    return any(_text(each) in accepted for each in (value if isinstance(value, list) else [value]))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _deduplicate(traces: Iterable[Trace], by: str) -> list[Trace]:
    """Return the traces without those whose rows all repeat the question, or the content, of earlier ones."""
    names = _CONTENT[:1] if by == "question" else _CONTENT
    seen: set[str] = set()
    kept = []
    for trace in traces:
        keys = {json.dumps([_normal(row.get(name)) for name in names]) for row in trace.rows}
        if not keys <= seen:
            kept.append(trace)
        seen |= keys
    return kept


def _normal(value: Any) -> Any:
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _sample(traces: Sequence[Trace], size: float, seed: int) -> list[Trace]:
    """Return the traces with the smallest digests: a new trace can only take the place of one with a greater digest."""
    ranks = {trace.trace_id: _rank(trace.trace_id, seed) for trace in traces}
    if size < 1:
        return [trace for trace in traces if ranks[trace.trace_id] < size]
    chosen = set(sorted(ranks, key=lambda trace_id: (ranks[trace_id], trace_id))[: int(size)])
    return [trace for trace in traces if trace.trace_id in chosen]


def _rank(trace_id: str, seed: int) -> float:
    """Return a number in [0, 1) that depends on a trace and the seed alone."""
    digest = hashlib.blake2b(f"{seed}/{trace_id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
