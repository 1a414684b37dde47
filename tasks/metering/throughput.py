"""Count the rows, tokens and conversations in flight that each judge server of a run had per second."""

from collections.abc import Sequence
from typing import ClassVar

from tasks.metering.server_counts import ServerRequests
from tasks.record.findings import FindingPart
from tasks.record.part import Part


class ServerThroughput(Part):
    """The speed of a judge server.

    Args:
        server: Address of the server.
        seconds: Time in which it had requests.
        rows_per_second: Rows of the run by these seconds; None without any.
        cached_tokens: Prompt tokens that it found in its prefix cache; None if it does not say.
        cached_tokens_from: `replies`, `counters` or `estimate`.
        estimated_cached_tokens: Estimate of these tokens.
        prompt_tokens_per_second: Prompt tokens that it computed, by these seconds.
        in_flight: Mean number of conversations in flight.
        slots: Largest number of conversations in flight.
    """

    server: str
    seconds: float
    rows_per_second: float | None
    requests: int
    prompt_tokens: int
    cached_tokens: int | None
    cached_tokens_from: str
    estimated_cached_tokens: int
    output_tokens: int
    prompt_tokens_per_second: float | None
    output_tokens_per_second: float | None
    in_flight: float
    slots: int


class ThroughputRecord(FindingPart):
    """The speed of the judge servers of a run.

    Args:
        rows: Number of rows that were evaluated.
        servers: Speed of each server.
    """

    entry: ClassVar[str] = "throughput"

    rows: int
    servers: tuple[ServerThroughput, ...]


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
