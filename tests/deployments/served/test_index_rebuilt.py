"""Schedules, and events that an index was rebuilt, on a real server with a real worker.

Everything runs once for all tests of the module: a burst of nine events that a fast clock begins, after the newest one,
for which the server made no run; an old event of a worse version, sent with the command of the guide; events that
cannot be evaluated; and a run that the schedule of each minute starts. A run is a process, which takes seconds: a test
that needs to know only that a run was made cancels it.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.events.schemas.deployment_triggers import DeploymentEventTrigger
from prefect.states import Cancelled

from deployments.cli._support.doctor_checks import Level, _check_automations
from deployments.events import emit_index_rebuilt
from deployments.local_server import ServerAddress
from deployments.registry.apply import DeploymentTarget, apply
from deployments.registry.automations import UNHEARD, stale_automations
from deployments.registry.changes import AppliedChanges, Change
from deployments.registry.report_events import AUTOMATIONS_LOADED_SECONDS
from deployments.registry.specs import plan_deployments
from deployments.registry.triggers import on_index_rebuilt
from flows.config.run_config import RunConfig
from flows.index_events.unhandled import GRACE, find_unhandled, start_unhandled
from flows.index_rebuilt import index_rebuilt
from metric_core.errors import ConfigError
from tasks.runs.baselines import Baselines
from tasks.runs.outcome_file import read_outcome
from tests.deployments.served.conftest import Ground, manifest_of, state_of, wait_for_runs
from tests.deployments.served.sending import send_raw
from tests.flows.test_index_rebuilt import ROWS, write
from tests.json_endpoint import JsonEndpoint
from tests.postgres import programs_for_prefect
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

LATE = "unheard"
"""Index of the event that is refused late."""

GUIDE = Path(__file__).parents[3] / "docs" / "index-events.md"


@dataclass(frozen=True)
class Story:
    """Deployments, runs and alerts that the tests examine.

    Args:
        ground: Server and worker.
        config: Configuration of the deployments.
        webhook: Endpoint that received the alerts.
        first: Changes of the first deployment.
        again: Changes of the second deployment.
        burst: Runs for a burst of nine events, which are older than one without a run.
        worse: Runs for an event of two hours ago, with a worse version of another index that is a JSON number.
        lacking: Runs for an event without a version.
        unknown: Runs for an event whose resource id lacks the prefix.
        scheduled: A run that the schedule has started.
    """

    ground: Ground
    config: dict[str, Any]
    webhook: JsonEndpoint
    first: list[AppliedChanges]
    again: list[AppliedChanges]
    burst: list[FlowRun]
    worse: list[FlowRun]
    lacking: list[FlowRun]
    unknown: list[FlowRun]
    scheduled: FlowRun


@pytest.fixture(scope="module")
def story(ground: Ground, webhook: JsonEndpoint) -> Story:
    good, bad = write(ground.folder / "good.jsonl"), write(ground.folder / "bad.jsonl", wrong=30)
    newest = write(ground.folder / "newest.jsonl", reworded=1)
    config = {
        "source": bad,
        "metrics": ["faithfulness"],
        "judge": {"backend": "builtin", "max_concurrent_stages": 2},
        "deploy": {
            "cron": "* * * * *",
            "alerts": {"webhook": "env:ALERTS"},
            "debounce_seconds": 4,
            "gate": {
                "absolute": ["faithfulness.mean >= 0.6"],
                "regression": [{"max_drop": 0.05}],
                "inconclusive": "passed",
            },
        },
    }
    away = RunConfig.model_validate({"source": good, "deploy": {"index": "elsewhere-*"}})
    # without a worker, it cannot report events that nobody listens to
    apply(plan_deployments(away, "-away"), DeploymentTarget(pool="without-a-worker"))
    first, again = ground.deploy(config), ground.deploy(config)
    with pause_for_a_while("rag-assay: index-rebuilt"):  # the server makes no run of these, as if it had lost them
        for index, version, dataset in (("handbook", "v1.10", newest), ("lost", "v1.0", good)):
            payload = {"index": index, "version": version, "dataset": dataset}
            send_raw(f"rag.index.{index}", payload, datetime.now(UTC))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(ground.home))
        patch.chdir(ground.folder)
        for index in ("handbook", "worse"):
            index_rebuilt(RunConfig.model_validate(config), index=index, version="1", dataset=good)
    now = datetime.now(UTC)
    payload = {"index": "handbook", "dataset": bad}
    send_raw("rag.index.handbook", {**payload, "version": "v1.1"}, now + timedelta(days=1))
    for number in (2, 3, 4, 5, 6, 7, 9, 8):
        emit_index_rebuilt("handbook", f"v1.{number}", bad)
    send_as_documented(ground.url, bad, now - timedelta(hours=2))
    send_raw("rag.index.lacking", {"index": "lacking", "dataset": good}, now)
    send_raw("index.handbook", {**payload, "version": "v1.11"}, now)
    scheduled = wait_for_schedule(ground)
    counts = {"handbook": 9, "worse": 1, "lacking": 1}
    burst, worse, lacking = (wait_for_runs(partial(runs_of, ground, each), counts[each]) for each in counts)
    unknown = wait_for_runs(lambda: ground.runs("refuse-event"), 1)
    return Story(ground, config, webhook, first, again, burst, worse, lacking, unknown, ground.wait_for_end(scheduled))


def wait_for_schedule(ground: Ground) -> FlowRun:
    """Wait until the schedule has started a run, pause it, and return the run."""

    def look() -> FlowRun | None:
        begun = [run for run in ground.runs("monitor") if run.auto_scheduled and run.run_count]
        return begun[0] if begun else None

    found = wait_until(look, "a scheduled run")
    with get_client(sync_client=True) as client:  # a run a minute from here on would tell nothing new
        client.pause_deployment(client.read_deployment_by_name("monitor/monitor").id)
    return found


def cancel(run: FlowRun) -> None:
    """Cancel a run, so that the worker starts no process for it."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run.id, Cancelled(), force=True)


def runs_of(ground: Ground, index: str) -> list[FlowRun]:
    """Return the runs for events of an index."""
    return [run for run in ground.runs("index-rebuilt") if run.parameters.get("index") == index]


def send_as_documented(url: str, dataset: str, occurred: datetime) -> None:
    """Send an event of `worse` with the command of the guide, with a version that is a number, and another time."""
    (command,) = re.findall(r"```bash\n(curl .*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    replaced = {
        "rag.index.handbook": "rag.index.worse",
        '"index": "handbook"': '"index": "worse"',
        '"version": "1.42.0"': '"version": 2',
        "s3://bucket/handbook/1.42.0.parquet": dataset,
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)": occurred.isoformat(),
    }
    for documented, other in replaced.items():
        assert documented in command
        command = command.replace(documented, other)
    environment = {**os.environ, "PREFECT_API_URL": url, "NO_PROXY": "127.0.0.1"}
    subprocess.run(["bash", "-ec", command], check=True, env=environment)


@contextmanager
def pause_for_a_while(automation: str) -> Iterator[None]:
    """Pause an automation of the server."""
    with get_client(sync_client=True) as client:
        (found,) = client.read_automations_by_name(automation)
        client.pause_automation(found.id)
        time.sleep(AUTOMATIONS_LOADED_SECONDS)
        yield
        time.sleep(AUTOMATIONS_LOADED_SECONDS)
        client.resume_automation(found.id)
        time.sleep(AUTOMATIONS_LOADED_SECONDS)


def test_second_deployment_changes_nothing(story: Story) -> None:
    own = [each for each in story.first if each.kind in ("deployment", "limit") or each.name.endswith("index-rebuilt")]
    assert {each.change for each in own} == {Change.CREATED}
    assert [(each.kind, each.name) for each in story.first] == [(each.kind, each.name) for each in story.again]
    assert {each.change for each in story.again} == {Change.UNCHANGED}
    with get_client(sync_client=True) as client:
        names = [each.name for each in client.read_automations()]
        assert len(names) == len(set(names)) >= 3
        builtin = [each.limit for each in client.read_global_concurrency_limits() if "judge-builtin" in each.name]
        assert builtin == [2]
        assert len(client.read_deployment_by_name("monitor/monitor").schedules) == 1


def test_burst_of_events_is_one_incremental_run_of_the_newest_version(story: Story) -> None:
    accepted, *others = sorted(state_of(run)[0] for run in story.burst)
    assert (accepted, set(others)) == ("Accepted", {"Superseded"})
    assert len(others) == 8 or programs_for_prefect() is None  # on SQLite, a busy server loses some
    (run,) = (each for each in story.burst if state_of(each)[0] == "Accepted")
    assert sum(run.run_count == 0 for run in story.burst) >= 5  # ended without a process, but for late ones
    assert run.parameters["version"] == "v1.10"
    current = Baselines(str(story.ground.home / "baselines")).current("handbook")
    assert current is not None
    assert (current.version, current.why, current.run_id) == ("v1.10", "passed", str(run.id))
    said = manifest_of(current.folder)["baseline"]
    assert said["rows"] == {"added": 0, "removed": 0, "changed": 1, "unchanged": ROWS - 1}
    assert 0 < said["asked"] <= 0.05 * said["questions"]


def test_event_whose_run_was_lost_gets_one_later(story: Story) -> None:
    later = datetime.now(UTC) + GRACE
    with get_client(sync_client=True) as client:
        start_unhandled(client, later)  # unless it was five minutes old when a run of the story looked
        assert find_unhandled(client, later) == []
    (run,) = runs_of(story.ground, "lost")
    cancel(run)
    (like,) = story.worse
    assert run.parameters.keys() == like.parameters.keys()
    assert (run.parameters["version"], Path(run.parameters["dataset"]).name) == ("v1.0", "good.jsonl")


def test_event_that_nobody_listens_to_is_refused_later_if_its_run_was_lost(story: Story) -> None:
    with get_client(sync_client=True) as client:
        (automation,) = client.read_automations_by_name(UNHEARD)
        client.pause_automation(automation.id)
        send_raw(f"index.{LATE}", {"index": LATE, "version": "1", "dataset": "a.jsonl"}, datetime.now(UTC))
        later = datetime.now(UTC) + GRACE
        lost = wait_until(lambda: find_unhandled(client, later, resource=f"index.{LATE}"), "the event")
        assert [(each.flow, each.deployment) for each in lost] == [("refuse-event", "refuse-event")]
        start_unhandled(client, later)
        assert find_unhandled(client, later) == []
        client.resume_automation(automation.id)
    refusals = story.ground.runs("refuse-event")
    (run,) = (each for each in refusals if each.parameters["event"]["id"] == str(lost[0].event.id))
    cancel(run)


def test_worse_version_keeps_the_baseline_and_sends_an_alert(story: Story) -> None:
    (run,) = story.worse
    assert state_of(run)[0] == "Failed"
    (alert,) = [each for each in story.webhook.received if each["outcome"] == "failed" and each["index"]]
    assert (alert["index"], alert["version"], alert["baseline"]) == ("worse", "2", "1")
    assert any(re.match(r"faithfulness: from (1\.0|0\.[89])\d* to 0\.", sentence) for sentence in alert["worse"])
    current = Baselines(str(story.ground.home / "baselines")).current("worse")
    assert current is not None
    assert current.version == "1"


def test_old_event_is_evaluated_with_the_time_and_the_number_that_it_has(story: Story) -> None:
    (run,) = story.worse
    assert run.created is not None
    announced = datetime.fromisoformat(run.parameters["announced"])
    assert 2 <= (run.created.timestamp() - announced.timestamp()) / 3600 < 3
    assert run.parameters["event"]["payload"]["version"] == 2


def test_events_that_cannot_be_evaluated_are_reported_once(story: Story) -> None:
    (run,), (refused,) = story.lacking, story.unknown
    assert state_of(run)[0] == state_of(refused)[0] == "Failed"
    assert "the event rag.index.rebuilt lacks version" in state_of(run)[1]
    assert "no deployment listens to the event rag.index.rebuilt of the resource index.handbook" in state_of(refused)[1]
    alerts = [(each["index"], each["version"]) for each in story.webhook.received if each["outcome"] == "error"]
    assert sorted(alerts) == [("handbook", "v1.11"), ("lacking", "?")]


def test_the_schedule_fires_and_its_runs_are_gated_and_told(story: Story) -> None:
    run = story.scheduled
    assert state_of(run)[0] == "Gate failed"
    assert run.parameters["config"]["metrics"] == ["faithfulness"]
    (alert,) = (each for each in story.webhook.received if each["name"] == "bad")
    assert (alert["outcome"], alert["index"]) == ("failed", "")
    outcome = read_outcome(Path(alert["folder"]))
    assert outcome is not None
    assert (outcome.trigger, outcome.accepted, outcome.gate) == ("schedule", True, "failed")
    assert (Path(alert["folder"]) / "report.html").is_file()


def test_command_emits_the_event(story: Story, assay: Callable[..., Any]) -> None:
    del story
    done = assay("event", "index-rebuilt", "--index", "quiet", "--version", "1", "--dataset", "nowhere.jsonl")
    assert (done.code, done.err) == (0, "")
    assert "index quiet was rebuilt, version 1" in done.out
    refused = assay("event", "index-rebuilt", "--index", "quiet", "--version", "1")
    assert refused.code == 2
    assert "lacks dataset" in refused.err


def test_deployments_on_one_index_are_named(story: Story) -> None:
    config = {"metrics": ["faithfulness"], "judge": {"backend": "builtin"}, "deploy": {"index": "manual"}}
    overlaps = [each.name for each in story.ground.deploy(config, "-manual") if each.kind == "overlap"]
    assert "index-rebuilt, index-rebuilt-manual" in overlaps


def test_undeploy_removes_everything_of_a_configuration(story: Story, assay: Callable[..., Any]) -> None:
    config = {"metrics": ["faithfulness"], "deploy": {"index": "gone", "cron": "0 0 1 1 *"}}
    story.ground.deploy(config, "-gone")
    with get_client(sync_client=True) as client:
        client.delete_deployment(client.read_deployment_by_name("rerun-crashed/rerun-crashed-gone").id)
        assert {each.name for each in stale_automations(client)} == {
            "rag-assay: rerun-crashed-gone",
            "rag-assay: rerun-crashed-gone: silence",
        }
        shown = assay("undeploy", "--name", "gone")
        assert "add --yes to remove" in shown.out
        assert "to remove  automation  rag-assay: rerun-crashed-gone: silence" in shown.out
        assert client.read_deployment_by_name("monitor/monitor-gone")
        done = assay("undeploy", "--name", "gone", "--yes")
        assert (done.code, done.err) == (0, "")
        assert "monitor/monitor-gone  (cron 0 0 1 1 * UTC)" in done.out
        assert "removed    automation  rag-assay: rerun-crashed-gone: silence" in done.out
        assert not [each.name for each in client.read_deployments() if each.name.endswith("-gone")]
        assert not [each.name for each in client.read_automations() if "-gone" in each.name]
        assert client.read_deployment_by_name("evaluate/evaluate")
    assert "there are no such deployments" in assay("undeploy", "--name", "gone", "--yes").out


def test_stale_automations_are_named_and_removed(story: Story) -> None:
    earlier = on_index_rebuilt("rag-assay: index-rebuilt: long burst", "*", 10)
    lost = on_index_rebuilt("rag-assay: index-rebuilt-lost", "*", 10)
    with get_client(sync_client=True) as client:
        for each in (earlier, lost):
            trigger = DeploymentEventTrigger.model_validate(each)
            trigger.set_deployment_id(client.read_deployment_by_name("index-rebuilt/index-rebuilt").id)
            client.create_automation(trigger.as_automation())
    (check,) = (each for each in _check_automations(ServerAddress(story.ground.url)) if each.name == "automations")
    assert (check.level, check.found) == (Level.WARNING, "their deployment is gone: rag-assay: index-rebuilt-lost")
    removed = [each.name for each in story.ground.deploy(story.config) if each.change is Change.REMOVED]
    assert set(removed) == {earlier["name"], lost["name"]}


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
