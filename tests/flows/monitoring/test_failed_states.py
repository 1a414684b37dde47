"""States of runs that found something wrong: Prefect takes only exceptions as the data of a failed state."""

import pytest
from prefect.states import get_state_exception

from flows.monitor import BadVerdict, monitor, run_monitor
from tests.flows.monitoring.conftest import Nights

pytestmark = [pytest.mark.prefect]


def test_failed_state_of_a_bad_night_has_an_exception_that_says_what_is_wrong(nights: Nights) -> None:
    nights.prepare(0.3)
    state = monitor(nights.configuration(), return_state=True)
    assert state.name == "Gate failed"
    error = get_state_exception(state)  # as Prefect's engine does at the end of the process
    assert isinstance(error, BadVerdict)
    assert str(error) == state.message == error.done.message
    nights.prepare(0.3)
    assert run_monitor(nights.configuration()).verdict == "failed"
