"""Debouncing: which event of a burst a run evaluates, and how long it waits for further ones."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client

from flows.config import deploy_options
from flows.config.deploy_options import DeploySettings
from flows.config.run_config import RunConfig
from flows.index_events.announced_dataset import check_dataset
from flows.index_events.debounce import WaitingRun, newest_of, seconds_to_wait
from flows.index_events.index_event import ArrivedEvent
from flows.index_rebuilt import index_rebuilt
from metric_core.errors import ConfigError
from tests.flows.deployed_flow import DeployedFlow
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


class Deployed(DeployedFlow):
    """A deployment of the flow, whose runs the test starts itself.

    Args:
        client: Client of the server.
        index: Index whose versions are evaluated.
    """

    def __init__(self, client: SyncPrefectClient, index: Index) -> None:
        self.index = index
        super().__init__(client, index_rebuilt, self.parameters())

    def parameters(self, **deploy: Any) -> dict[str, Any]:
        """Return the parameters of the deployment, with further options of `deploy`."""
        return {"config": {**self.index.config, "deploy": {**self.index.settings, "debounce_seconds": 0.5, **deploy}}}

    def announce(self, version: Any, dataset: str, **payload: Any) -> UUID:
        """Create the run of an event, as the trigger does, and return its id."""
        event = make_event(version, received=datetime.now(UTC), dataset=dataset, **payload)
        return self.create(index="handbook", version=str(version), event=event.parameter)


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


@pytest.mark.prefect
@pytest.mark.models
def test_endless_burst_evaluates_the_newest_version_so_far(
    on_server: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy_options, "LONGEST_WAIT", 3.0)
    is_over = threading.Event()

    def announce_more() -> int:
        version = 1
        while not is_over.wait(0.2):  # sooner than the half second that a run waits for a later event
            version += 1
            on_server.announce(version, on_server.index.good)
        return version

    first = on_server.announce(1, on_server.index.good)
    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(announce_more)
        try:
            over = on_server.start(first)
        finally:
            is_over.set()
    assert over.state_name == "Accepted"
    assert 1 < int(on_server.client.read_flow_run(first).parameters["version"]) < others.result()


def test_event_that_no_trigger_passes_is_refused() -> None:
    with pytest.raises(ConfigError, match="the parameter event must be what the trigger"):
        ArrivedEvent.from_parameter({"id": "x"})
    event = make_event(7)
    assert ArrivedEvent.from_parameter(event.parameter) == event


@pytest.mark.prefect
@pytest.mark.models
def test_version_that_cannot_be_evaluated_supersedes_none(on_server: Deployed) -> None:
    index = on_server.index
    first = on_server.announce(1, index.good)
    gone, above = str(index.folder / "gone.jsonl"), f"{index.folder}/../good.jsonl"
    datasets = (gone, "/etc/passwd", above, "http://127.0.0.1:9/x.csv")
    hostile = [on_server.announce(version, dataset) for version, dataset in enumerate(datasets, 2)]
    older = on_server.announce("0.9", index.bad)
    assert on_server.start(first).state_name == "Accepted"
    assert on_server.client.read_flow_run(first).parameters["version"] == "1"
    assert on_server.state(older)[0] == "Superseded"
    for run in hostile:
        assert on_server.state(run)[0] == "Scheduled"
        assert on_server.start(run).state_name == "Failed"
    assert [alert["version"] for alert in index.alerts] == ["2", "3", "4", "5"]
    assert all("does not lie in" in alert["text"] for alert in index.alerts[1:])


@pytest.mark.prefect
@pytest.mark.models
def test_waiting_run_takes_the_configuration_of_a_new_deployment(on_server: Deployed) -> None:
    index = on_server.index
    gone = on_server.announce(1, str(index.folder / "gone.jsonl"))
    moved = index.folder / "moved.jsonl"
    on_server.deploy(on_server.parameters(alerts={"file": str(moved)}))
    assert on_server.start(gone).state_name == "Failed"
    assert (len(moved.read_text(encoding="utf-8").splitlines()), index.alerts) == (1, [])


def test_datasets_lie_where_the_deployment_says(tmp_path: Path) -> None:
    def check(dataset: str, source: str | None = None, datasets: str | None = None) -> None:
        check_dataset(RunConfig(source=source, deploy=DeploySettings(datasets=datasets)), dataset)

    check("s3://bucket/handbook/1.csv", datasets="s3://bucket/handbook")
    check(f"{tmp_path}/b.jsonl", source=str(tmp_path / "a.jsonl"))
    check("retriever:")
    for dataset in (
        "s3://bucket/other/1.csv",
        "s3://bucket/handbook/%2e%2e/1.csv",
        "zip://x::s3://bucket/handbook/1.zip",
    ):
        with pytest.raises(ConfigError, match="does not lie in s3://bucket/handbook"):
            check(dataset, datasets="s3://bucket/handbook")
    for dataset in (
        "/etc/passwd",
        f"file://{tmp_path}/a.jsonl",
        "hub:owner/name",
        f"{tmp_path}\\..\\x",
        f"{tmp_path}x/1.csv",
    ):
        with pytest.raises(ConfigError, match="does not lie in"):
            check(dataset, source=str(tmp_path / "a.jsonl"))
    with pytest.raises(ConfigError, match=r"set deploy\.datasets in its configuration"):
        check("/etc/passwd")
