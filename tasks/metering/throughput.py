"""Count the rows, tokens and conversations in flight that each judge server of a run had per second."""

from collections.abc import Sequence

from tasks.metering.server_counts import ServerRequests
from tasks.record.cost import ServerThroughput, ThroughputRecord


def measure_servers(records: Sequence[ServerRequests], rows: int) -> ThroughputRecord | None:
    """Return how fast servers have answered; None if no server was asked.

    Args:
        rows: Number of rows that were evaluated.
    """
    servers = tuple(_measure_server(record, rows) for record in records)
    return ThroughputRecord(rows=rows, servers=servers) if servers else None


def _measure_server(record: ServerRequests, rows: int) -> ServerThroughput:
    usage, counted = record.usage, record.counted
    told = None if counted is None else round(counted.cached)
    cached = usage.cached_tokens if record.tells_cached else told
    computed = usage.prompt_tokens - (record.estimated_cached if cached is None else cached)
    return ServerThroughput(
        server=record.name,
        seconds=round(usage.seconds, 3),
        rows_per_second=_rate(rows, usage.seconds, 4),
        requests=usage.requests,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=cached,
        cached_tokens_from="replies" if record.tells_cached else "counters" if counted else "estimate",
        estimated_cached_tokens=record.estimated_cached,
        output_tokens=usage.output_tokens,
        prompt_tokens_per_second=_rate(computed, usage.seconds, 1),
        output_tokens_per_second=_rate(usage.output_tokens, usage.seconds, 1),
        in_flight=round(record.in_flight, 2),
        slots=record.slots,
    )


def _rate(count: float, seconds: float, digits: int) -> float | None:
    return round(count / seconds, digits) if seconds else None
