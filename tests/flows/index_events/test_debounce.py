"""Debouncing: the events that a run of `index-rebuilt` takes, and the longest wait of an event."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pydantic import ValidationError

from deployments.registry.triggers import on_index_rebuilt, on_long_burst
from flows.config.deploy_options import DeploySettings
from flows.index_events.debounce import waiting_events
from flows.index_events.index_event import IndexRebuilt

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUIET = timedelta(seconds=10)


def after_noon(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def events_at(seconds: Sequence[float]) -> dict[UUID, IndexRebuilt]:
    """Return events at these seconds after noon, as versions 0, 1 and so on."""
    events = (IndexRebuilt("handbook", str(version), "data.jsonl", after_noon(s)) for version, s in enumerate(seconds))
    return {UUID(int=number): event for number, event in enumerate(events)}


def versions(events: dict[UUID, IndexRebuilt]) -> list[str]:
    return [event.version for event in events.values()]


def test_run_takes_its_burst_and_later_events() -> None:
    events = events_at([0, 30, 38, 47, 48, 90])
    assert versions(waiting_events(events, (), after_noon(48), QUIET)) == ["1", "2", "3", "4", "5"]


def test_runs_divide_the_events_of_an_endless_burst() -> None:
    endless = events_at(range(0, 600, 5))
    until_now = {key: event for key, event in endless.items() if event.announced <= after_noon(300)}
    first = waiting_events(until_now, (), after_noon(285), QUIET)
    assert versions(first) == [str(version) for version in range(61)]
    second = waiting_events(endless, first, after_noon(590), QUIET)
    assert versions(second) == [str(version) for version in range(61, 120)]
    assert not waiting_events(endless, [*first, *second], after_noon(590), QUIET)


def test_event_of_a_fast_clock_hides_no_later_event() -> None:
    events = events_at([400, 5])
    assert versions(waiting_events(events, [UUID(int=0)], after_noon(5), QUIET)) == ["1"]


def test_run_of_a_taken_event_takes_later_events() -> None:
    events = events_at([0, 100])
    assert versions(waiting_events(events, [UUID(int=0)], after_noon(0), QUIET)) == ["1"]


@pytest.mark.parametrize("quiet", [10, 150, 3600])
def test_long_burst_gets_half_of_the_longest_wait(quiet: float) -> None:
    settings = DeploySettings(debounce_seconds=quiet)
    seconds = (settings.debounce_seconds, settings.longest_wait)
    burst = on_index_rebuilt("a", "*", quiet)["within"]
    long_burst = on_long_burst("b", "*", "index-rebuilt", seconds)["within"]
    assert burst == quiet < long_burst
    assert 2 * long_burst + quiet == settings.longest_wait


def test_deployments_take_the_same_events_independently() -> None:
    one, other = (on_long_burst("a", "*", name, (10, 600))["expect"] for name in ("index-rebuilt", "index-rebuilt-b"))
    assert one != other


def test_longest_wait_is_at_least_four_quiet_periods() -> None:
    assert DeploySettings(debounce_seconds=20, longest_wait_seconds=80).longest_wait == 80
    with pytest.raises(ValidationError, match="at least four times debounce_seconds, here 80"):
        DeploySettings(debounce_seconds=20, longest_wait_seconds=79)


def test_quiet_period_is_at_least_ten_seconds() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 10"):
        DeploySettings(debounce_seconds=5)
