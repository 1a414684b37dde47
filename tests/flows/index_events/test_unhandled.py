"""Events that no run has taken up."""

from datetime import timedelta

from flows.index_events.listeners import FLOW
from flows.index_events.unhandled import UnhandledEvent, is_handled
from tests.flows.index_events.test_debounce import NOON, make_event


def test_event_is_handled_by_its_own_run_or_by_that_of_a_later_version() -> None:
    event = make_event("1.9")
    assert is_handled(event, [event.parameter])
    assert is_handled(event, [make_event("1.10").parameter])
    assert not is_handled(event, [make_event("1.8").parameter, None, {"id": "x"}, "01a2"])
    assert not is_handled(event, [])


def test_event_of_another_index_handles_nothing() -> None:
    other = make_event("2").parameter | {"resource": "rag.index.other"}
    assert not is_handled(make_event("1"), [other])


def test_invalid_event_is_handled_by_its_own_run_alone() -> None:
    invalid = make_event(1.1)
    assert is_handled(invalid, [invalid.parameter])
    assert not is_handled(invalid, [make_event("2").parameter])


def test_words_name_version_index_and_time() -> None:
    event = make_event("7", received=NOON + timedelta(seconds=1))
    assert UnhandledEvent(FLOW, "d", event).words == "version 7 of rag.index.handbook, received 2026-11-21 12:00:01 UTC"
