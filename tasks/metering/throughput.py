"""Estimate judge-server utilization and its bottleneck.

With u prompt tokens to compute and o output tokens per row, a server with the rates P and D judges at most
1 / (u/P + o/D) rows a second. The share of the limit that a run reached is the share of its time for which the server
would have been busy at these rates. The rest of the time was lost: to the store, while a stage waited for it; to the
client, while this process computed; else to questions that were not ready, because they depend on answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.metering.server_counts import ServerRequests
from tasks.metering.server_rates import ServerRates, fit_rates, join_intervals
from tasks.metering.timeline import RunSegment

SERVER, CLIENT, STORE, QUESTIONS = "server", "client", "store", "questions"
"""The causes that may hold a run back."""

_AT_THE_LIMIT = 0.9
"""Share of the limit from which on the server held the run back."""

_FULL = 0.5
"""Conversations in flight, as a share of those allowed, from which on the server surely had enough to do."""

_MOST = 0.6
"""Share of the time from which on the work of this process, or waiting for the store, explains a slow run."""

TOO_SHORT = "too little of the run kept the server busy to measure its rates"


@dataclass(frozen=True, slots=True)
class _Lost:
    """Seconds in which the server was not busy, by what they were lost to."""

    store: float
    client: float
    questions: float
    server: float

    @property
    def cause(self) -> str:
        causes = (self.store, STORE), (self.client, CLIENT), (self.questions, QUESTIONS), (self.server, SERVER)
        return max(causes)[1]


def throughput_entry(records: Sequence[ServerRequests], rows: int) -> dict[str, Any] | None:
    """Return the entry `throughput` of run.json; None if no server was asked.

    Args:
        rows: Number of rows that were evaluated.
    """
    servers = [_server_entry(record, rows) for record in records]
    return {"rows": rows, "servers": servers} if servers else None


def _server_entry(record: ServerRequests, rows: int) -> dict[str, Any]:
    intervals, usage, counted = record.intervals, record.usage, record.counted
    if counted is not None:
        intervals = tuple(map(_as_counted, intervals))
    seconds = sum(interval.seconds for interval in intervals)
    entry: dict[str, Any] = {
        "server": record.name,
        "seconds": round(seconds, 3),
        "rows_per_second": round(rows / seconds, 4) if seconds else None,
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens if record.tells_cached else counted and round(counted.cached),
        "cached_tokens_from": "replies" if record.tells_cached else "counters" if counted else "estimate",
        "estimated_cached_tokens": record.estimated_cached,
        "output_tokens": usage.output_tokens,
        "in_flight": round(sum(interval.in_flight for interval in intervals) / seconds, 2) if seconds else 0.0,
        "slots": record.slots,
        "client_cpu_seconds": round(sum(interval.cpu for interval in intervals), 3),
        "store_seconds": round(sum(interval.store for interval in intervals), 3),
    }
    rates = fit_rates(intervals)
    if rates is None:
        return {**entry, "reason": TOO_SHORT}
    busy = rates.seconds(
        sum(interval.prompt_tokens for interval in intervals), sum(interval.output_tokens for interval in intervals)
    )
    share = min(1.0, busy / seconds)
    entry |= {
        "prompt_tokens_per_second": _rate(rates.prompt_rate),
        "output_tokens_per_second": _rate(rates.output_rate),
        "seconds_per_million_prompt_tokens": round(1e6 * rates.seconds_per_prompt_token, 6),
        "seconds_per_million_output_tokens": round(1e6 * rates.seconds_per_output_token, 6),
        "windows": rates.windows,
        "is_lower_bound": rates.in_flight < _FULL * record.slots,
        "limit_rows_per_second": round(rows / busy, 4),
        "share_of_limit": round(share, 4),
    }
    if entry["is_lower_bound"]:
        return {**entry, "held_back_by": _main_work(intervals, seconds)}
    lost = _split(record.slots, intervals, rates, max(0.0, seconds - busy))
    return {
        **entry,
        "held_back_by": SERVER if share >= _AT_THE_LIMIT else lost.cause,
        "lost_seconds": {
            STORE: round(lost.store, 3),
            CLIENT: round(lost.client, 3),
            QUESTIONS: round(lost.questions, 3),
            SERVER: round(lost.server, 3),
        },
    }


def _main_work(intervals: Sequence[RunSegment], seconds: float) -> str:
    """Return what this process did for most of the time of a server that never had enough to do."""
    store = sum(interval.store for interval in intervals) / seconds
    client = sum(interval.cpu for interval in intervals) / seconds
    if max(store, client) < _MOST:
        return QUESTIONS
    return STORE if store > client else CLIENT


def _rate(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)


def _as_counted(interval: RunSegment) -> RunSegment:
    """Return an interval with the tokens that the server counted itself."""
    prompt, output = round(interval.counted_prompt), round(interval.counted_output)
    return replace(interval, prompt_tokens=prompt, output_tokens=output)


def _split(slots: int, intervals: Sequence[RunSegment], rates: ServerRates, lost: float) -> _Lost:
    """Divide lost seconds by their causes, in the proportions of the intervals in which the server had little to do."""
    store = client = questions = 0.0
    for interval in join_intervals(intervals):
        enough = min(1.0, interval.in_flight / (_FULL * slots * interval.seconds))
        idle = max(0.0, interval.seconds - rates.seconds(interval.prompt_tokens, interval.output_tokens))
        idle *= 1.0 - enough
        in_store = min(idle, interval.store)
        in_client = min(idle - in_store, interval.cpu)
        store, client, questions = store + in_store, client + in_client, questions + idle - in_store - in_client
    total = store + client + questions
    share = min(1.0, lost / total) if total else 0.0  # what is lost beside that, the server itself was slower
    return _Lost(store * share, client * share, questions * share, lost - total * share)
