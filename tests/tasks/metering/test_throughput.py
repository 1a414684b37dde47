"""Tests that the rates of a server are found in the requests of a run, and what kept the run from its limit."""

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from tasks.metering.server_counts import ServerRequests
from tasks.metering.server_rates import fit_rates
from tasks.metering.throughput import TOO_SHORT, throughput_entry
from tasks.metering.timeline import RunSegment
from tasks.reports.run.cost_lines import throughput_lines
from tasks.runtime.usage import Usage

P, D = 20_000, 2_000


def busy(count: int, *, noise: float = 0.0, mixes: Iterable[float] = (0.2, 0.5, 0.9)) -> list[RunSegment]:
    """Return seconds of a server that is always busy, with shares of its time for prompts."""
    random, shares = Random(1), tuple(mixes)
    found = []
    for number in range(count):
        share = shares[number % len(shares)]
        scale = 1 + random.uniform(-noise, noise)
        prompt, output = round(scale * share * P), round(scale * (1 - share) * D)
        found.append(RunSegment(1.0, 100.0, 0.0, 0.1, 50, prompt, output))
    return found


def entry_of(intervals: list[RunSegment], slots: int = 128, rows: int = 100) -> dict[str, Any]:
    usage = Usage(requests=10, prompt_tokens=sum(i.prompt_tokens for i in intervals))
    entry = throughput_entry([ServerRequests("http://gpu/v1", slots, usage, True, 0, tuple(intervals))], rows)
    assert entry is not None
    (server,) = entry["servers"]
    return dict(server)


def test_rates_of_a_busy_server() -> None:
    rates = fit_rates(busy(40, noise=0.1))
    assert rates is not None
    assert rates.prompt_rate == pytest.approx(P, rel=0.1)
    assert rates.output_rate == pytest.approx(D, rel=0.1)
    assert rates.in_flight == pytest.approx(100)


def test_idle_parts_do_not_lower_the_rates() -> None:
    idle = [RunSegment(1.0, 3.0, 0.0, 0.0, 5, P // 50, D // 50)] * 60
    rates = fit_rates([*busy(40), *idle])
    assert rates is not None
    assert rates.prompt_rate == pytest.approx(P, rel=0.01)


def test_rates_of_one_mix_are_not_told_apart_but_the_limit_is_known() -> None:
    server = entry_of(busy(40, noise=0.05, mixes=(0.7,)), rows=80)
    assert None in (server["prompt_tokens_per_second"], server["output_tokens_per_second"])
    assert server["limit_rows_per_second"] == pytest.approx(2.0, rel=0.02)


def test_a_rate_that_takes_no_time_is_not_told() -> None:
    """As on a server that generates while it reads other prompts."""
    random = Random(2)
    intervals = [RunSegment(1.0, 100.0, 0.0, 0.1, 50, P, random.randrange(100)) for _ in range(40)]
    rates = fit_rates(intervals)
    assert rates is not None
    assert rates.prompt_rate == pytest.approx(P, rel=0.05)
    assert rates.output_rate is None


def test_a_run_at_the_limit_is_held_back_by_the_server() -> None:
    server = entry_of(busy(40), rows=80)
    assert (server["share_of_limit"], server["held_back_by"]) == (1.0, "server")
    assert server["rows_per_second"] == server["limit_rows_per_second"] == 2.0


@pytest.mark.parametrize(
    ("store", "cpu", "cause"), [(0.9, 0.1, "store"), (0.1, 0.8, "client"), (0.0, 0.1, "questions")]
)
def test_time_below_the_limit_has_a_cause(store: float, cpu: float, cause: str) -> None:
    lost = [RunSegment(1.0, 2.0, store, cpu, 1, 0, 0)] * 40
    server = entry_of([*busy(40), *lost], rows=80)
    assert server["share_of_limit"] == pytest.approx(0.5, abs=0.02)
    assert server["limit_rows_per_second"] == pytest.approx(2.0, rel=0.02)
    assert server["held_back_by"] == cause
    assert sum(server["lost_seconds"].values()) == pytest.approx(40, rel=0.05)
    (line,) = throughput_lines({"throughput": {"servers": [server]}})
    assert "1 rows/s, 50 % of its limit of 2 (" in line


@pytest.mark.parametrize(("cpu", "cause"), [(0.95, "client"), (0.1, "questions")])
def test_a_server_that_never_had_enough_to_do_has_no_known_limit(cpu: float, cause: str) -> None:
    """Its rates are those of the client: nothing says how much faster it could be."""
    intervals = [RunSegment(1.0, 4.0, 0.0, cpu, 50, P // 4, D // 4)] * 40
    server = entry_of(intervals)
    assert (server["is_lower_bound"], server["held_back_by"]) == (True, cause)
    assert "lost_seconds" not in server
    (line,) = throughput_lines({"throughput": {"servers": [server]}})
    assert "below its limit, which is not known" in line


def test_a_short_run_says_that_it_is_too_short() -> None:
    server = entry_of(busy(3))
    assert (server["reason"], "share_of_limit" in server) == (TOO_SHORT, False)
    assert list(throughput_lines({"throughput": {"servers": [server]}})) == []


def test_without_a_server_there_is_no_entry() -> None:
    assert throughput_entry([], 100) is None
    assert list(throughput_lines({})) == []
