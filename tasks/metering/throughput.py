"""Count the rows, tokens and conversations in flight that each judge server of a run had per second."""

from collections.abc import Sequence
from typing import Any

from tasks.metering.server_counts import ServerRequests


def throughput_entry(records: Sequence[ServerRequests], rows: int) -> dict[str, Any] | None:
    """Return the entry `throughput` of run.json; None if no server was asked.

    Args:
        rows: Number of rows that were evaluated.
    """
    servers = [_server_entry(record, rows) for record in records]
    return {"rows": rows, "servers": servers} if servers else None


def _server_entry(record: ServerRequests, rows: int) -> dict[str, Any]:
    usage, counted = record.usage, record.counted
    told = None if counted is None else round(counted.cached)
    cached = usage.cached_tokens if record.tells_cached else told
    computed = usage.prompt_tokens - (record.estimated_cached if cached is None else cached)
    return {
        "server": record.name,
        "seconds": round(usage.seconds, 3),
        "rows_per_second": _rate(rows, usage.seconds, 4),
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": cached,
        "cached_tokens_from": "replies" if record.tells_cached else "counters" if counted else "estimate",
        "estimated_cached_tokens": record.estimated_cached,
        "output_tokens": usage.output_tokens,
        "prompt_tokens_per_second": _rate(computed, usage.seconds, 1),
        "output_tokens_per_second": _rate(usage.output_tokens, usage.seconds, 1),
        "in_flight": round(record.in_flight, 2),
        "slots": record.slots,
    }


def _rate(count: float, seconds: float, digits: int) -> float | None:
    return round(count / seconds, digits) if seconds else None
