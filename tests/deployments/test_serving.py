"""The table of deployments: what it says of a configuration, and that `prefect.yaml` is what it says."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.events.schemas.deployment_triggers import DeploymentEventTrigger
from prefect.flows import load_flow_from_entrypoint

from deployments.applying import Place, apply
from deployments.serving import Deployed, as_parameter, deployments_of
from flows.config import RunConfig
from flows.loading import load_config
from metric_core.errors import ConfigError
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too

ROOT = Path(__file__).parents[2]
PREFECT_YAML = ROOT / "deployments" / "prefect.yaml"
CONFIG = ROOT / "examples" / "deployed.toml"
TABLE = deployments_of(RunConfig(source="/data/sources/rows.jsonl"))


def test_the_deployments_are_these() -> None:
    assert [each.full_name for each in TABLE] == [
        "evaluate/evaluate",
        "index-rebuilt/index-rebuilt",
        "rerun-stage/rerun-stage",
        "compare/compare-and-gate",
        "calibrate/calibrate",
        "prune/prune",
        "rerun-crashed/rerun-crashed",
    ]


@pytest.mark.parametrize("deployed", TABLE, ids=lambda each: each.name)
def test_the_flow_takes_what_the_deployment_gives(deployed: Deployed) -> None:
    flow: Any = load_flow_from_entrypoint(deployed.entrypoint, use_placeholder_flow=False)
    assert flow.name == deployed.flow
    taken = inspect.signature(flow.fn).parameters
    given = {*deployed.parameters, *(deployed.trigger or {}).get("parameters", {})}
    assert given <= taken.keys()


def test_prefect_yaml_is_what_the_command_writes(assay: Callable[..., Any]) -> None:
    done = assay("deploy", str(CONFIG), "--pool", "rag-assay", "--working-dir", "/data", "--yaml")
    assert (done.code, done.err) == (0, "")
    assert PREFECT_YAML.read_text(encoding="utf-8") == done.out


def test_prefect_yaml_has_triggers_that_prefect_takes() -> None:
    content = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))
    triggers = [trigger for each in content["deployments"] for trigger in each.get("triggers", ())]
    assert [DeploymentEventTrigger.model_validate(trigger).name for trigger in triggers] == [
        "rag-assay: index-rebuilt",
        "rag-assay: rerun-crashed",
    ]


def test_a_configuration_survives_as_a_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.toml").write_text('absolute = ["faithfulness.mean >= 0.8"]', encoding="utf-8")
    (tmp_path / "assay.toml").write_text(
        'source = "rows.jsonl"\nmetrics = ["faithfulness"]\n'
        '[deploy]\ngate = "gate.toml"\nbaselines = "accepted"\nalerts = {webhook = "env:HOOK"}\n',
        encoding="utf-8",
    )
    parameter = as_parameter(load_config(Path("assay.toml")))
    assert parameter["source"] == str(tmp_path / "rows.jsonl")
    assert parameter["deploy"]["baselines"] == str(tmp_path / "accepted")
    again = RunConfig.model_validate(parameter)
    assert again.deploy.gate is not None
    assert again.deploy.gate.absolute[0].at_least == 0.8
    assert as_parameter(again) == parameter


def test_names_of_two_configurations_do_not_meet() -> None:
    one, other = deployments_of(RunConfig(source="a")), deployments_of(RunConfig(source="b"), "-b")
    assert not {each.full_name for each in one} & {each.full_name for each in other}
    assert not {each.trigger["name"] for each in one if each.trigger} & {
        each.trigger["name"] for each in other if each.trigger
    }


@pytest.mark.parametrize(("cron", "timezone"), [("every day", "UTC"), ("0 6 * * *", "Mars/Olympus")])
def test_a_schedule_that_is_none_is_refused(cron: str, timezone: str) -> None:
    config = RunConfig.model_validate({"source": "a", "deploy": {"cron": cron, "timezone": timezone}})
    with pytest.raises(ConfigError, match="a schedule is a cron expression"):
        deployments_of(config)


def test_secrets_are_named_not_written(tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    path.write_text('[deploy.alerts]\nwebhook = "https://hooks.example/T0/secret"', encoding="utf-8")
    with pytest.raises(ConfigError, match="a secret is named, not written") as refused:
        load_config(path)
    assert "hooks.example" not in str(refused.value)


def test_without_a_server_there_is_nothing_to_deploy_to(
    assay: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    done = assay("deploy", "rows.jsonl")
    assert done.code == 2
    assert "set PREFECT_API_URL" in done.err


def test_a_schedule_needs_data(assay: Callable[..., Any]) -> None:
    done = assay("deploy", "--cron", "0 6 * * *")
    assert done.code == 2
    assert "name a source in the configuration" in done.err


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_server")
def test_pools_of_images_need_one_and_pools_of_processes_take_none() -> None:
    config = RunConfig(source="a")
    with pytest.raises(ConfigError, match="--image NAME"):
        apply(config, Place(pool="images", pool_type="kubernetes"))
    with pytest.raises(ConfigError, match="runs no images"):
        apply(config, Place(pool="processes", pool_type="process", image="x:1"))
    done = apply(config, Place(pool="images", pool_type="docker", image="rag-assay:local"))
    assert done[0].detail == "docker"
    with pytest.raises(ConfigError, match="is of type docker, not process"):
        apply(config, Place(pool="images", pool_type="process"))
