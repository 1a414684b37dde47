"""Parameters of a deployment's run: none names code, commands, files or addresses that the deployment does not."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client

from deployments.registry.specs import build_specs, plan_deployments
from flows.calibrate import calibrate
from flows.compare import compare
from flows.config.run_config import RunConfig
from flows.evaluate import evaluate
from flows.execution.deployed_parameters import choose_parameters, is_own_run
from flows.index_rebuilt import index_rebuilt
from flows.monitor import monitor
from flows.prune import prune
from flows.refuse_event import refuse_event
from flows.rerun_stage import rerun_stage
from metric_core.errors import ConfigError, SourceError
from tasks.options.option import declarations
from tasks.prefect_support.deployed_run import DeployedRun, version_of
from tests.flows.deployed_flow import DeployedFlow
from tests.flows.test_index_rebuilt import Index

OPTIONS = tuple(declarations(RunConfig))
DOCUMENTED = Path(__file__).parents[3] / "docs" / "deployments.md"
HOSTILE = "changed-by-a-run:system"


def options(config: RunConfig) -> None:
    """A flow with nothing but options."""


def folders(run: str, note: str = "", count: int = 1, out: str | None = None) -> None:
    """A flow whose parameters are no options."""


def choose(
    own: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    created_from: str | None = None,
    flow: Any = options,
    **named: Any,
) -> dict[str, Any]:
    """Return the parameters of a run that was given some in place of its deployment's."""
    version = version_of(own)
    run = DeployedRun("nightly", own, {**own, **given}, version, created_from or version)
    return choose_parameters(run, flow, {tuple(name.split("__")): choice for name, choice in named.items()})


def configuration(place: tuple[str, ...], value: Any) -> dict[str, Any]:
    for name in reversed(place):
        value = {name: value}
    return dict(value)


def test_every_option_that_is_not_declared_free_is_refused_with_its_name() -> None:
    own = {"config": {"source": "rows.jsonl", "judge": {"backend": "server", "server": {"urls": ["http://judge/v1"]}}}}
    refused = [option for option in OPTIONS if option.facts.by_run is not True and not option.in_list]
    assert len(refused) > 300
    for option in refused:
        with pytest.raises(ConfigError) as error:
            choose(own, {"config": configuration(option.place, HOSTILE)})
        assert f"cannot set {'.'.join(('config', *option.place))}:" in str(error.value)
        assert HOSTILE not in str(error.value)


def test_nothing_that_is_a_path_or_a_secret_is_declared_free() -> None:
    free = {".".join(option.place) for option in OPTIONS if option.facts.by_run}
    assert not [each.place for each in OPTIONS if each.facts.by_run and each.facts.holds != "text"]
    text = DOCUMENTED.read_text(encoding="utf-8")
    groups = ("verdicts", "writing", "ratings", "panel")
    listed = {name for name in free if not any(part in groups for part in name.split("."))}
    assert [name for name in sorted(listed) if f"`{name}`" not in text] == []


def test_run_sets_what_is_free_and_keeps_the_rest() -> None:
    own = {"config": {"source": "rows.jsonl", "limit": 5, "redact": "privacy:redact", "judge": {"backend": "builtin"}}}
    traces = {"sample": 10}
    given = {"limit": 7, "metrics": ["faithfulness", {"metric": "noise_sensitivity"}], "traces": traces, "judge": {}}
    assert choose(own, {"config": given}) == {"config": {**own["config"], **given, "judge": {"backend": "builtin"}}}
    unchanged = {"redact": "privacy:redact", "sinks": {}, "judge": {"backend": "builtin", "launch": None}}
    assert choose(own, {"config": unchanged}) == own
    for hostile in ({"redact": None}, {"judge": "http://elsewhere/v1"}, {"anchor": {"source": "/etc/passwd"}}):
        with pytest.raises(ConfigError, match=f"cannot set config.{next(iter(hostile))}"):
            choose(own, {"config": hostile})


def test_a_monitored_run_cannot_set_what_changes_its_scores() -> None:
    own = {"config": {"source": "a.jsonl", "slices": []}}
    given = {"config": {**own["config"], "limit": 3, "slices": ["topic"]}}
    version = version_of(own)
    run = DeployedRun("nightly", own, given, version, version)
    assert choose_parameters(run, options, {})["config"]["limit"] == 3
    message = r"cannot set config\.limit: .* since its runs are compared; the deployment evaluate runs a trial"
    with pytest.raises(ConfigError, match=message):
        choose_parameters(run, options, {}, is_monitored=True)


def test_metrics_that_load_code_are_those_of_the_deployment() -> None:
    own = {"config": {"metrics": ["mine:metric"]}}
    assert (
        choose(own, {"config": {"metrics": ["faithfulness", "mine:metric"]}})["config"]["metrics"][0] == "faithfulness"
    )
    for metrics in (["os:system"], "faithfulness,os:system", [{"metric": "os:system"}], [["os:system"]]):
        with pytest.raises(ConfigError, match=r"cannot set config\.metrics"):
            choose(own, {"config": {"metrics": metrics}})


def test_parameters_that_hold_no_text_are_free_and_others_are_not(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"run": "runs/first", "count": 3}
    assert choose({}, given, flow=folders, run=is_own_run) == given
    assert choose({"out": "/kept"}, given, flow=folders, run=is_own_run) == {"out": "/kept", **given}
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "out").symlink_to("/etc")
    for run in ("/etc", "runs", "runs/../../etc", "http://elsewhere/run", "runs/out/x"):
        with pytest.raises(ConfigError, match="cannot set run"):
            choose({}, {"run": run}, flow=folders, run=is_own_run)
    for name in ("note", "out", "unknown"):
        with pytest.raises(ConfigError, match=f"cannot set {name}"):
            choose({}, {name: "/tmp"}, flow=folders)


def test_unchanged_run_of_an_earlier_deployment_takes_the_current_one() -> None:
    earlier, own = {"config": {"source": "a", "limit": 3}}, {"config": {"source": "b", "redact": "mine:redact"}}
    assert choose(own, earlier, created_from=version_of(earlier)) == own
    with pytest.raises(ConfigError, match=r"config\.source.*The deployment has changed since the run was created"):
        choose(own, {"config": {"source": "c"}}, created_from=version_of(earlier))


LAUNCH = {"launch": {"python": "sh", "model": "m"}}
REFUSED: tuple[tuple[Any, dict[str, Any], str], ...] = (
    (evaluate, {"config": {"redact": "os:system"}}, "config.redact"),
    (evaluate, {"config": {"out": "/elsewhere", "sinks": {"otlp": "http://elsewhere"}}}, "config.out, config.sinks"),
    (monitor, {"config": {"judge": LAUNCH}}, "config.judge.launch.python, config.judge.launch.model"),
    (index_rebuilt, {"config": {"metrics": ["os:system"]}, "index": "a"}, "config.metrics"),
    (rerun_stage, {"run": "/etc", "judge": "os:system", "out": "/elsewhere"}, "run, judge, out"),
    (compare, {"comparison": {"baseline": "/etc", "gate": "/etc/passwd"}}, "comparison.baseline, comparison.gate"),
    (calibrate, {"request": {"metric": "os:system", "config": {"source": "/etc/passwd"}}}, "request.metric"),
    (prune, {"settings": {"runs": "/", "dry_run": False}}, "settings.runs"),
    (refuse_event, {"event": {}, "alerts": {"file": "/elsewhere"}}, "alerts.file"),
)


def test_every_deployed_flow_that_takes_text_is_in_these_cases() -> None:
    named = {flow.name for flow, _, _ in REFUSED}
    assert {each.flow for each in build_specs(plan_deployments(RunConfig()))} == named | {
        "rerun-crashed"
    }  # a UUID and a number


@pytest.fixture
def client(prefect_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncPrefectClient]:
    del prefect_server
    monkeypatch.chdir(tmp_path)
    with get_client(sync_client=True) as client:
        yield client


@pytest.mark.prefect
def test_every_flow_refuses_what_only_its_deployment_sets(client: SyncPrefectClient) -> None:
    for flow, given, named in REFUSED:
        deployed = DeployedFlow(client, flow, {})
        run = deployed.create(**given)
        deployed.start(run)
        name, message = deployed.state(run)
        ended = "Error" if flow is monitor else "Failed"  # it tells people itself
        assert (name, f"cannot set {named}" in message) == (ended, True), (flow.name, message)


@pytest.mark.prefect
@pytest.mark.models
def test_run_evaluates_what_its_deployment_names_and_what_it_chose(client: SyncPrefectClient, tmp_path: Path) -> None:
    (tmp_path / "privacy.py").write_text("def redact(text): return text.replace('bikes', 'b****')", encoding="utf-8")
    index = Index(tmp_path)
    config = {**index.config, "source": index.good, "redact": "privacy:redact", "out": str(tmp_path / "runs" / "first")}
    deployed = DeployedFlow(client, evaluate, {"config": config})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        run = deployed.create(config={"limit": 3})
        assert deployed.start(run).state_name == "Completed", deployed.state(run)
    manifest = json.loads((tmp_path / "runs" / "first" / "run.json").read_text(encoding="utf-8"))
    assert (manifest["rows"], manifest["config"]["redact"]) == (3, "privacy:redact")
    again = DeployedFlow(client, rerun_stage, {})
    rerun = again.create(run="runs/first", stage="verdicts")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert again.start(rerun).state_name == "Completed", again.state(rerun)


@pytest.mark.prefect
@pytest.mark.models
def test_waiting_run_follows_a_new_deployment(client: SyncPrefectClient, tmp_path: Path) -> None:
    index = Index(tmp_path)
    old, new = ({"config": {**index.config, "source": source}} for source in (str(tmp_path / "gone.jsonl"), index.good))
    deployed = DeployedFlow(client, evaluate, old)
    scheduled, custom = deployed.create(), deployed.create(config={**old["config"], "limit": 3})
    deployed.deploy(new)
    assert deployed.start(scheduled).state_name == "Completed", deployed.state(scheduled)
    deployed.start(custom)
    assert "cannot set config.source" in deployed.state(custom)[1]


@pytest.mark.prefect
def test_program_that_calls_a_flow_sets_everything(prefect_server: str, tmp_path: Path) -> None:
    del prefect_server
    with pytest.raises(SourceError, match=r"gone\.jsonl"):
        evaluate(RunConfig(source=str(tmp_path / "gone.jsonl"), out=str(tmp_path / "out"), redact="os:system"))
