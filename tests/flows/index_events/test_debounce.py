"""Which events of an index a run takes up, and how long one of them may wait."""

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


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def sent(seconds: Sequence[float]) -> dict[UUID, IndexRebuilt]:
    """Events that were sent so many seconds after noon, the first of them version 0."""
    events = (IndexRebuilt("handbook", str(version), "data.jsonl", at(s)) for version, s in enumerate(seconds))
    return {UUID(int=number): event for number, event in enumerate(events)}


def versions(events: dict[UUID, IndexRebuilt]) -> list[str]:
    return [event.version for event in events.values()]


def test_a_run_takes_up_its_burst_and_all_since() -> None:
    events = sent([0, 30, 38, 47, 48, 90])
    assert versions(waiting_events(events, (), at(48), QUIET)) == ["1", "2", "3", "4", "5"]


def test_in_a_burst_without_end_each_run_takes_up_what_the_one_before_has_left() -> None:
    endless = sent(range(0, 600, 5))
    until_now = {key: event for key, event in endless.items() if event.announced <= at(300)}
    first = waiting_events(until_now, (), at(285), QUIET)
    assert versions(first) == [str(version) for version in range(61)]
    second = waiting_events(endless, first, at(590), QUIET)
    assert versions(second) == [str(version) for version in range(61, 120)]
    assert not waiting_events(endless, [*first, *second], at(590), QUIET)


def test_a_clock_that_is_ahead_hides_no_later_event() -> None:
    events = sent([400, 5])
    assert versions(waiting_events(events, [UUID(int=0)], at(5), QUIET)) == ["1"]


def test_an_event_that_a_run_has_taken_up_leaves_it_with_what_came_since() -> None:
    events = sent([0, 100])
    assert versions(waiting_events(events, [UUID(int=0)], at(0), QUIET)) == ["1"]


@pytest.mark.parametrize("quiet", [10, 150, 3600])
def test_a_long_burst_is_given_half_of_the_time_that_an_event_may_wait(quiet: float) -> None:
    settings = DeploySettings(debounce_seconds=quiet)
    seconds = (settings.debounce_seconds, settings.longest_wait)
    burst = on_index_rebuilt("a", "*", quiet)["within"]
    long_burst = on_long_burst("b", "*", "index-rebuilt", seconds)["within"]
    assert burst == quiet < long_burst
    assert 2 * long_burst + quiet == settings.longest_wait


def test_two_deployments_take_up_the_same_events_each_for_itself() -> None:
    one, other = (on_long_burst("a", "*", name, (10, 600))["expect"] for name in ("index-rebuilt", "index-rebuilt-b"))
    assert one != other


def test_the_longest_wait_leaves_time_to_be_quiet() -> None:
    assert DeploySettings(debounce_seconds=20, longest_wait_seconds=80).longest_wait == 80
    with pytest.raises(ValidationError, match="at least four times debounce_seconds, here 80"):
        DeploySettings(debounce_seconds=20, longest_wait_seconds=79)


def test_prefect_takes_no_shorter_quiet_than_ten_seconds() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 10"):
        DeploySettings(debounce_seconds=5)
