"""Tests of the tokens per second and conversations in flight of the servers of a run."""

import pytest

from tasks.findings.throughput.throughput_finding import describe_servers
from tasks.metering.server_counters import Counters
from tasks.metering.server_counts import ServerRequests
from tasks.metering.throughput import ServerThroughput, ThroughputRecord, measure_servers
from tasks.runtime.usage import Usage

USAGE = Usage(requests=10, prompt_tokens=9_000, cached_tokens=4_000, output_tokens=50, seconds=10.0)


def entry_of(*, tells_cached: bool = True, counted: Counters | None = None) -> ServerThroughput:
    entry = measure_servers([ServerRequests("http://gpu/v1", 128, USAGE, tells_cached, 6_000, 42.0, counted)], 80)
    assert entry is not None
    (server,) = entry.servers
    return server


def test_a_run_says_tokens_per_second_and_conversations_in_flight() -> None:
    server = entry_of()
    assert (server.prompt_tokens_per_second, server.output_tokens_per_second) == (500.0, 5.0)
    (line,) = describe_servers(ThroughputRecord(rows=1, servers=(server,)))
    assert line == (
        "judge server http://gpu/v1: 8 rows/s, 500 uncached prompt tokens/s and 5 output tokens/s, "
        "42 of 128 conversations in flight"
    )


@pytest.mark.parametrize(
    ("counted", "source", "cached", "rate"),
    [(Counters(9_000, 8_000, 50), "counters", 8_000, 100.0), (None, "estimate", None, 300.0)],
)
def test_cached_tokens_that_replies_do_not_tell_are_counted_or_estimated(
    counted: Counters | None, source: str, cached: int | None, rate: float
) -> None:
    server = entry_of(tells_cached=False, counted=counted)
    assert (server.cached_tokens_from, server.cached_tokens) == (source, cached)
    assert server.prompt_tokens_per_second == rate


def test_without_a_server_there_is_no_entry() -> None:
    assert measure_servers([], 100) is None
    assert list(describe_servers(None)) == []
