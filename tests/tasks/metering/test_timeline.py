"""Tests of the time of the requests to a server: what is in flight, and what does not count."""

import pytest

from tasks.metering.timeline import Timeline


def test_conversations_in_flight_are_integrated() -> None:
    timeline = Timeline()
    timeline.start_request(10.0, 2)
    timeline.start_request(12.0, 1)
    timeline.end_request(13.0, 2)
    timeline.end_request(14.0, 1)
    assert (timeline.seconds, timeline.in_flight) == pytest.approx((4.0, (2 * 2 + 3 + 1) / 4))


def test_time_after_the_last_reply_does_not_count() -> None:
    timeline = Timeline()
    timeline.start_request(0.0, 1)
    timeline.end_request(0.1, 1)
    timeline.start_request(60.0, 1)
    assert (timeline.seconds, timeline.in_flight) == pytest.approx((0.1, 1.0))
    timeline.end_request(60.1, 1)
    assert (timeline.seconds, timeline.in_flight) == pytest.approx((60.1, 0.2 / 60.1))


def test_a_timeline_without_requests_is_empty() -> None:
    timeline = Timeline()
    assert (timeline.is_empty, timeline.seconds, timeline.in_flight) == (True, 0.0, 0.0)
