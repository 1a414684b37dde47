"""Tokens by the counters of a server: how they are read, and when they are trusted."""

import asyncio

import pytest

from tasks.metering import server_counters
from tasks.metering.meter import Meter
from tasks.metering.server_counters import Counters, add_counters, parse_counters
from tasks.metering.server_counts import ReplyTokens

VLLM = """\
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="org/judge 8B"} 1.5e+06
vllm:prompt_tokens_total{engine="1",model_name="org/judge 8B"} 500000.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="org/judge 8B",source="local"} 1.0
vllm:prefix_cache_hits_total{engine="0",model_name="org/judge 8B"} 900000.0
vllm:prefix_cache_hits_created{engine="0",model_name="org/judge 8B"} 1.7e+09
vllm:generation_tokens_total{engine="0",model_name="org/judge 8B"} 4000.0
vllm:kv_cache_usage_perc{engine="0",model_name="org/judge 8B"} nan
"""


def test_engines_are_added_up_and_the_newer_counter_of_cached_tokens_goes_first() -> None:
    assert parse_counters(VLLM) == Counters(2_000_000, 900_000, 4000)
    newer = f'{VLLM}vllm:prompt_tokens_cached_total{{engine="0"}} 800000.0\n'
    assert parse_counters(newer) == Counters(2_000_000, 800_000, 4000)
    assert add_counters([VLLM, newer]) == Counters(4_000_000, 1_700_000, 8000)


@pytest.mark.parametrize(
    "text", ["", "not found", VLLM.replace("generation", "written"), VLLM.replace("4000.0", "4.0.0"), None]
)
def test_a_server_without_all_counters_has_none(text: str | None) -> None:
    assert add_counters([VLLM, text]) is None


@pytest.mark.parametrize(
    ("last", "is_trusted"),
    [
        (Counters(3000, 1600, 60), True),
        (Counters(9000, 1600, 60), False),  # of others, too
        (Counters(10, 0, 0), False),  # the server was started again
        (None, False),
    ],
)
def test_counters_are_trusted_if_they_are_about_this_run(
    monkeypatch: pytest.MonkeyPatch, last: Counters | None, is_trusted: bool
) -> None:
    monkeypatch.setattr(server_counters, "SECONDS", 60.0)
    readings = [Counters(1000, 100, 10), last]
    meter = Meter()
    observer = meter.observe("http://gpu/v1", 8, counters=lambda: readings.pop(0))
    assert meter.observe("http://gpu/v1", 8, counters=lambda: readings.pop(0)) is observer
    end = asyncio.run(observer.begin(16))
    end(ReplyTokens(2000, None, 50))
    (record,) = meter.records()
    assert record.counted == (Counters(2000, 1500, 50) if is_trusted else None)
    meter.close()
