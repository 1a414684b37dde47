"""Schedules, and events that an index was rebuilt, on a real server with a real worker.

Everything runs once for all tests of the module: a burst of ten events, a worse version, and an event that lacks a
field, while the schedule of each minute fires.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.events.schemas.events import Event

from deployments.events import emit_index_rebuilt
from deployments.registry.apply import AppliedChanges, Change
from flows.config.run_config import RunConfig
from flows.index_events.index_event import EVENT
from flows.index_rebuilt import index_rebuilt
from metric_core.errors import ConfigError
from tasks.runs.baselines import Baselines
from tests.deployments.served.conftest import Ground, manifest_of, state_of, until
from tests.flows.test_index_rebuilt import ROWS, write
from tests.json_endpoint import JsonEndpoint

pytestmark = [pytest.mark.prefect, pytest.mark.models]


@dataclass(frozen=True)
class Story:
    """Deployments, runs and alerts that the tests examine.

    Args:
        ground: Server and worker.
        webhook: Endpoint that received the alerts.
        first: Changes of the first deployment.
        again: Changes of the second deployment.
        burst: Runs for a burst of ten events.
        worse: Runs for a worse version of another index.
        lacking: Runs for an event without a version.
    """

    ground: Ground
    webhook: JsonEndpoint
    first: list[AppliedChanges]
    again: list[AppliedChanges]
    burst: list[FlowRun]
    worse: list[FlowRun]
    lacking: list[FlowRun]


@pytest.fixture(scope="module")
def story(ground: Ground, webhook: JsonEndpoint) -> Story:
    good, bad = write(ground.folder / "good.jsonl"), write(ground.folder / "bad.jsonl", wrong=30)
    newest = write(ground.folder / "newest.jsonl", reworded=1)
    config = {
        "source": good,
        "metrics": ["faithfulness"],
        "judge": {"backend": "builtin", "max_concurrent_stages": 2},
        "deploy": {"cron": "* * * * *", "alerts": {"webhook": "env:ALERTS"}},
    }
    first, again = ground.deploy(config), ground.deploy(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(ground.home))
        patch.chdir(ground.folder)
        for index in ("handbook", "worse"):
            index_rebuilt(RunConfig.model_validate(config), index=index, version="v1.0", dataset=good)
    for version in (1, 2, 3, 4, 10, 5, 6, 7, 9, 8):
        emit_index_rebuilt("handbook", f"v1.{version}", newest if version == 10 else bad)
    emit_index_rebuilt("worse", "v1.1", bad)
    send_raw("lacking", {"index": "lacking", "dataset": good})
    runs = {index: wait_for_runs(ground, index) for index in ("handbook", "worse", "lacking")}
    return Story(ground, webhook, first, again, *runs.values())


def wait_for_runs(ground: Ground, index: str) -> list[FlowRun]:
    """Wait until an index has runs and all have ended, and return them."""

    def look() -> list[FlowRun]:
        found = [run for run in ground.runs("index-rebuilt") if run.parameters["index"] == index]
        return found if all(run.state is not None and run.state.is_final() for run in found) else []

    runs: list[FlowRun] = until(look, f"the runs of {index}")
    return runs


def send_raw(index: str, payload: dict[str, Any]) -> None:
    """Send an event without the checks of `emit_index_rebuilt`."""
    event = Event.model_validate(
        {
            "event": EVENT,
            "occurred": datetime.now(UTC),
            "resource": {"prefect.resource.id": f"rag.index.{index}"},
            "payload": payload,
        }
    )
    with get_client(sync_client=True) as client:
        client.request("POST", "/events", json=[event.model_dump(mode="json")])


def test_second_deployment_changes_nothing(story: Story) -> None:
    assert {each.change for each in story.first if each.kind != "work pool"} == {Change.CREATED}
    assert [(each.kind, each.name) for each in story.first] == [(each.kind, each.name) for each in story.again]
    assert {each.change for each in story.again} == {Change.UNCHANGED}
    with get_client(sync_client=True) as client:
        names = [each.name for each in client.read_automations()]
        assert len(names) == len(set(names)) >= 3
        builtin = [each.limit for each in client.read_global_concurrency_limits() if "judge-builtin" in each.name]
        assert builtin == [2]
        assert len(client.read_deployment_by_name("evaluate/evaluate").schedules) == 1


def test_burst_of_events_is_one_incremental_run_of_the_newest_version(story: Story) -> None:
    (run,) = story.burst
    assert {name: run.parameters[name] for name in ("index", "version")} == {"index": "handbook", "version": "v1.8"}
    assert run.parameters["dataset"].endswith("bad.jsonl")  # the last event's; the newest version takes its place
    assert state_of(run)[0] == "Accepted"
    current = Baselines(str(story.ground.home / "baselines")).current("handbook")
    assert current is not None
    assert (current.version, current.why, current.run_id) == ("v1.10", "passed", str(run.id))
    said = manifest_of(current.folder)["baseline"]
    assert said["rows"] == {"added": 0, "removed": 0, "changed": 1, "unchanged": ROWS - 1}
    assert 0 < said["asked"] <= 0.05 * said["questions"]


def test_worse_version_keeps_the_baseline_and_sends_an_alert(story: Story) -> None:
    (run,) = story.worse
    assert state_of(run)[0] == "Failed"
    (alert,) = [each for each in story.webhook.received if each["outcome"] == "failed"]
    assert (alert["index"], alert["version"], alert["baseline"]) == ("worse", "v1.1", "v1.0")
    assert any(sentence.startswith("faithfulness: from 1.000 to 0.") for sentence in alert["worse"])
    current = Baselines(str(story.ground.home / "baselines")).current("worse")
    assert current is not None
    assert current.version == "v1.0"


def test_event_without_a_field_fails_its_run_with_a_message(story: Story) -> None:
    (run,) = story.lacking
    name, message = state_of(run)
    assert name == "Failed"
    assert "the event rag.index.rebuilt lacks version" in message
    assert [each["index"] for each in story.webhook.received if each["outcome"] == "error"] == ["lacking"]


def test_the_schedule_is_registered_and_fires(story: Story) -> None:
    def fired() -> list[FlowRun]:
        runs = story.ground.runs("evaluate")
        return [run for run in runs if run.auto_scheduled and run.state is not None and run.state.is_completed()]

    run = until(fired, "a scheduled run")[0]
    with get_client(sync_client=True) as client:  # a run a minute from here on would tell nothing new
        client.pause_deployment(client.read_deployment_by_name("evaluate/evaluate").id)
    assert run.parameters["config"]["metrics"] == ["faithfulness"]
    assert "deploy" not in run.parameters["config"]
    assert list(Path(story.ground.folder, "runs").glob("*-good/report.html"))


def test_command_emits_the_event(story: Story, assay: Callable[..., Any]) -> None:
    del story
    done = assay("event", "index-rebuilt", "--index", "quiet", "--version", "1", "--dataset", "nowhere.jsonl")
    assert (done.code, done.err) == (0, "")
    assert "index quiet was rebuilt, version 1" in done.out
    refused = assay("event", "index-rebuilt", "--index", "quiet", "--version", "1")
    assert refused.code == 2
    assert "lacks dataset" in refused.err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("handbook", "", "data.jsonl"), "lacks version"),
        (("hand/book", "1", "data.jsonl"), "the id of an index must have"),
        (("handbook", "1 2", "data.jsonl"), "a version must have up to 100 characters"),
        (("handbook", "1", "s3://key:secret@bucket/data.jsonl"), "must hold no user and no password"),
    ],
)
def test_invalid_event_is_refused_by_the_sender(values: tuple[str, str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        emit_index_rebuilt(*values)
    assert "secret" not in str(refused.value)


def test_endless_burst_evaluates_the_newest_version_so_far(ground: Ground) -> None:
    """Send events until a run has begun; a further run evaluates those that came later."""
    dataset = write(ground.folder / "endless.jsonl")
    deploy = {"index": "endless*", "longest_wait_seconds": 40, "alerts": {"file": str(ground.folder / "alerts")}}
    ground.deploy({"metrics": ["faithfulness"], "judge": {"backend": "builtin"}, "deploy": deploy}, "-endless")
    versions = iter(range(1, 1000))

    def announced() -> list[FlowRun]:
        emit_index_rebuilt("endless", str(next(versions)), dataset)
        time.sleep(1)
        return [run for run in ground.runs("index-rebuilt-endless") if run.state_type is StateType.RUNNING]

    (first,) = until(announced, "a run although events still arrive")
    last = next(versions) - 1
    over = ground.wait_for_end(first)
    assert state_of(over)[0] == "Accepted", state_of(over)

    def caught_up() -> bool:
        current = Baselines(str(ground.home / "baselines")).current("endless")
        return current is not None and current.version == str(last)

    until(caught_up, "the last version")
    others = [ground.wait_for_end(run) for run in ground.runs("index-rebuilt-endless")]
    assert {state_of(run)[0] for run in others} <= {"Accepted", "Superseded"}
