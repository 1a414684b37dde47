"""Tests of the intervals of a run: what is integrated, and what the end of the run and a long run do to them."""

import pytest

from tasks.metering.timeline import FIRST_WIDTH, MOST_INTERVALS, RunSegment, Timeline


class Cpu:
    """A clock of CPU time that tests set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def total(timeline: Timeline) -> RunSegment:
    return sum(timeline.intervals(), RunSegment())


def test_conversations_in_flight_and_waiting_are_integrated() -> None:
    cpu = Cpu()
    timeline = Timeline(cpu)
    cpu.seconds = 5.0  # before the first request
    timeline.start_request(10.0, 2)
    timeline.wait_for_store(10.5, 1)
    cpu.seconds = 5.5
    timeline.wait_for_store(11.5, -1)
    timeline.start_request(12.0, 1)
    timeline.end_request(13.0, 2, 100, 7, is_answered=True)
    timeline.end_request(14.0, 1, is_answered=False)
    found = total(timeline)
    assert (found.seconds, found.in_flight, found.store) == pytest.approx((4.0, 2 * 2 + 3 + 1, 1.0))
    assert (found.replies, found.prompt_tokens, found.output_tokens) == (2, 100, 7)
    assert found.cpu == pytest.approx(0.5)


def test_time_after_the_last_reply_does_not_count() -> None:
    cpu = Cpu()
    timeline = Timeline(cpu)
    timeline.start_request(0.0, 1)
    timeline.end_request(0.1, 1, 10, 1, is_answered=True)
    timeline.wait_for_store(0.15, 1)
    cpu.seconds = 60.0
    timeline.wait_for_store(60.0, -1)
    found = total(timeline)
    assert (found.seconds, found.store) == pytest.approx((0.1, 0.05), abs=0.051)
    assert found.replies == 1
    assert found.cpu < 0.2
    assert timeline.seconds == pytest.approx(0.1)


def test_reply_at_the_end_of_an_interval_is_counted() -> None:
    timeline = Timeline(Cpu())
    timeline.start_request(0.0, 1)
    timeline.end_request(FIRST_WIDTH, 1, 10, 1, is_answered=True)
    assert (total(timeline).seconds, total(timeline).prompt_tokens) == (FIRST_WIDTH, 10)


def test_a_long_run_keeps_a_bounded_number_of_intervals() -> None:
    timeline = Timeline(Cpu())
    for second in range(3 * MOST_INTERVALS):
        timeline.start_request(float(second), 1)
        timeline.end_request(second + 0.5, 1, 10, 1, is_answered=True)
    assert len(timeline.intervals()) <= MOST_INTERVALS
    assert timeline.width > FIRST_WIDTH
    found = total(timeline)
    assert (found.replies, found.prompt_tokens) == (3 * MOST_INTERVALS, 30 * MOST_INTERVALS)
    assert found.seconds == pytest.approx(3 * MOST_INTERVALS - 0.5)


def test_a_timeline_without_requests_is_empty() -> None:
    timeline = Timeline(Cpu())
    timeline.wait_for_store(1.0, 1)
    timeline.wait_for_store(2.0, -1)
    assert (timeline.intervals(), timeline.seconds) == ([], 0)
