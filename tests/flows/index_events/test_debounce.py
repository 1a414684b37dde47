"""Debouncing: which event of a burst a run evaluates, and how long it waits for further ones."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow
from prefect.states import Scheduled
from pydantic import ValidationError

from flows.config.deploy_options import DeploySettings
from flows.index_events.debounce import WaitingRun, newest_of, seconds_to_wait
from flows.index_events.index_event import ArrivedEvent
from flows.index_rebuilt import index_rebuilt
from metric_core.errors import ConfigError
from tests.flows.test_index_rebuilt import Index

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUIET, LONGEST = timedelta(seconds=10), timedelta(seconds=60)

MakeEvent = Callable[..., ArrivedEvent]


def after_noon(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def make_event(version: Any, *, occurred: datetime = NOON, received: datetime = NOON, **payload: Any) -> ArrivedEvent:
    content = {"index": "handbook", "version": version, "dataset": "rows.jsonl", **payload}
    return ArrivedEvent(uuid4(), "rag.index.handbook", occurred, received, content)


def waiting(event: ArrivedEvent) -> WaitingRun:
    return WaitingRun(uuid4(), event, event.rebuilt())


@pytest.mark.parametrize(
    ("arrivals", "now", "left"),
    [([0], 10, 0), ([0, 4], 10, 4), ([4, 0], 14, 0), ([0, 49, 55], 59, 1), (range(0, 61, 5), 60, 0)],
)
def test_run_waits_for_the_end_of_the_burst_but_not_for_long(arrivals: list[int], now: int, left: float) -> None:
    assert seconds_to_wait(list(map(after_noon, arrivals)), after_noon(now), QUIET, LONGEST) == left


def test_newest_version_is_taken_in_any_order() -> None:
    runs = [waiting(make_event(version)) for version in ("1.9", 2, "1.10", "1.2")]
    assert newest_of(runs).rebuilt.version == "2"
    named = [waiting(make_event(name, occurred=after_noon(at))) for name, at in (("green", 2), ("blue", 0))]
    assert newest_of(named).rebuilt.version == "green"


def test_fast_clock_makes_no_version_newer_than_its_arrival() -> None:
    fast = make_event("blue", occurred=after_noon(86_400), received=NOON)
    later = make_event("green", occurred=after_noon(5), received=after_noon(5))
    assert newest_of([waiting(fast), waiting(later)]).rebuilt.version == "green"


def test_longest_wait_is_at_least_four_quiet_periods() -> None:
    assert DeploySettings(debounce_seconds=20, longest_wait_seconds=80).longest_wait == 80
    with pytest.raises(ValidationError, match="at least four times debounce_seconds, here 80"):
        DeploySettings(debounce_seconds=20, longest_wait_seconds=79)


class Deployed:
    """A deployment of the flow on the local server, whose runs the test starts itself.

    Args:
        client: Client of the server.
        index: Index whose versions are evaluated.
    """

    def __init__(self, client: SyncPrefectClient, index: Index) -> None:
        self.client = client
        self.index = index
        self.id = client.create_deployment(
            flow_id=client.create_flow_from_name("index-rebuilt"),
            name=f"index-rebuilt-{uuid4().hex}",
            parameters={"config": {**index.config, "deploy": {**index.settings, "debounce_seconds": 0.5}}},
            enforce_parameter_schema=False,
        )
        self.name = client.read_deployment(self.id).name

    def announce(self, version: Any, dataset: str, **payload: Any) -> UUID:
        """Create the run of an event, as the trigger does, and return its id."""
        event = make_event(version, received=datetime.now(UTC), dataset=dataset, **payload)
        parameters = {"index": "handbook", "version": str(version), "event": event.parameter}
        return self.client.create_flow_run_from_deployment(self.id, parameters=parameters, state=Scheduled()).id

    def start(self, run: UUID) -> FlowRun:
        """Run a flow run in this process, as a worker would, and return it."""
        started = self.client.read_flow_run(run)
        run_flow(index_rebuilt, flow_run=started, parameters=started.parameters, return_type="state")
        return self.client.read_flow_run(run)

    def state(self, run: UUID) -> tuple[str | None, str]:
        """Return the name and the message of the state of a run."""
        state = self.client.read_flow_run(run).state
        assert state is not None
        return state.name, state.message or ""


@pytest.fixture
def on_server(prefect_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    del prefect_server
    monkeypatch.chdir(tmp_path)
    with get_client(sync_client=True) as client:
        yield Deployed(client, Index(tmp_path))


@pytest.mark.prefect
@pytest.mark.models
def test_burst_is_one_evaluation_and_says_so_at_each_of_its_runs(on_server: Deployed) -> None:
    good, bad = on_server.index.good, on_server.index.bad
    first, invalid, second, other = (
        on_server.announce(2, good),
        on_server.announce(1.10, good),
        on_server.announce("v1.9", bad),
        on_server.announce(3, bad, index="other"),
    )
    assert on_server.start(second).state_name == "Accepted"  # the run of v1.9 evaluates version 2
    assert on_server.client.read_flow_run(second).parameters["version"] == "2"  # and would again after a crash
    name, message = on_server.state(first)
    assert name == "Superseded"
    assert message.endswith("which evaluates version 2")
    assert {on_server.state(each)[0] for each in (invalid, other)} == {"Scheduled"}
    failed = on_server.start(invalid)
    assert failed.state_name == "Failed"
    assert [alert["version"] for alert in on_server.index.alerts] == ["1.1"]
    assert "1.10 and 1.1 are equal" in on_server.index.alerts[0]["text"]


def test_event_that_no_trigger_passes_is_refused() -> None:
    with pytest.raises(ConfigError, match="the parameter event must be what the trigger"):
        ArrivedEvent.from_parameter({"id": "x"})
    event = make_event(7)
    assert ArrivedEvent.from_parameter(event.parameter) == event
