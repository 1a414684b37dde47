"""The deployments of a configuration, and `prefect.yaml` as the command writes it."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.events.schemas.deployment_triggers import DeploymentEventTrigger
from prefect.flows import load_flow_from_entrypoint
from pydantic import ValidationError

from deployments.registry.apply import DeploymentTarget, apply
from deployments.registry.schedules import interval_schedule, parse_schedule
from deployments.registry.specs import as_parameter, build_specs, plan_deployments
from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.runtime.log_format import HANDLERS
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too

ROOT = Path(__file__).parents[3]
PREFECT_YAML = ROOT / "deployments" / "prefect.yaml"
CONFIG = ROOT / "examples" / "deployed.toml"
ANCHOR = "2026-01-01T00:00:00+00:00"
TABLE = build_specs(plan_deployments(RunConfig(source="/data/sources/rows.jsonl")))


def test_the_deployments_are_these() -> None:
    assert [each.full_name for each in TABLE] == [
        "evaluate/evaluate",
        "monitor/monitor",
        "index-rebuilt/index-rebuilt",
        "rerun-stage/rerun-stage",
        "compare/compare-and-gate",
        "calibrate/calibrate",
        "prune/prune",
        "rerun-crashed/rerun-crashed",
        "refuse-event/refuse-event",
    ]


def test_flow_accepts_the_parameters_of_the_deployment() -> None:
    for deployed in TABLE:
        flow: Any = load_flow_from_entrypoint(deployed.entrypoint, use_placeholder_flow=False)
        assert flow.name == deployed.flow, deployed
        taken = inspect.signature(flow.fn).parameters
        given = {*deployed.parameters, *(name for trigger in deployed.triggers for name in trigger["parameters"])}
        assert given <= taken.keys(), deployed


def test_runs_log_in_the_format_of_the_configuration() -> None:
    given = {"env": {"PREFECT_LOGGING_COLORS": "true"}}
    logs = {name: value for name, value in DeploymentTarget(pool="p").variables["env"].items() if "LOGGING" in name}
    changed = DeploymentTarget(pool="p", log_format="json", job_variables=given).variables["env"]
    assert logs == HANDLERS
    assert {name: value for name, value in changed.items() if "LOGGING" in name} == HANDLERS | {
        "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json",
        "PREFECT_LOGGING_HANDLERS_DEBUG_FORMATTER": "json",
        "PREFECT_LOGGING_COLORS": "true",
    }


def test_prefect_yaml_matches_the_output_of_the_command(assay: Callable[..., Any]) -> None:
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


def test_names_of_two_configurations_do_not_collide() -> None:
    one, other = (
        build_specs(plan_deployments(RunConfig(source="a"))),
        build_specs(plan_deployments(RunConfig(source="b"), "-b")),
    )
    assert not {each.full_name for each in one} & {each.full_name for each in other}
    names = [{trigger["name"] for each in table for trigger in each.triggers} for table in (one, other)]
    assert not names[0] & names[1]


@pytest.mark.parametrize(
    ("cron", "timezone"),
    [("every day", "UTC"), ("0 6 * * *", "Mars/Olympus"), ("0 6 * * *", ""), ("0 6 * * * *", "UTC"), ("", "UTC")],
)
def test_invalid_schedule_is_refused(cron: str, timezone: str) -> None:
    config = RunConfig.model_validate({"source": "a", "deploy": {"cron": cron, "timezone": timezone}})
    with pytest.raises(ConfigError, match="a schedule must be a cron expression"):
        build_specs(plan_deployments(config))


def test_schedule_belongs_to_monitored_runs_with_gate_and_alerts() -> None:
    for written in ({"cron": "0 6 * * *"}, {"interval": "4h"}):
        deploy = {**written, "alerts": {"webhook": "env:HOOK"}, "gate": {"absolute": ["faithfulness >= 0.8"]}}
        config = RunConfig.model_validate({"source": "a", "deploy": deploy})
        by_name = {each.name: each for each in build_specs(plan_deployments(config))}
        assert [name for name, each in by_name.items() if each.schedule is not None] == ["monitor"]
        monitored = by_name["monitor"].parameters["config"]["deploy"]
        assert {"gate", "alerts"} <= monitored.keys()
    assert by_name["monitor"].schedule == {"interval": 14400.0, "anchor_date": ANCHOR, "timezone": "UTC"}


def test_deployments_with_a_name_share_it_as_the_name_of_the_evaluation() -> None:
    specs = build_specs(plan_deployments(RunConfig(source="a"), "-handbook"))
    names = {each.parameters["config"].get("name") for each in specs if "config" in each.parameters}
    assert names == {"handbook"}


def test_invalid_interval_is_refused() -> None:
    for interval in ["", "0m", "4", "4 hours", "-1h", "367d", "9" * 30 + "m", "1m1h"]:
        with pytest.raises(ConfigError, match="an interval must be days, hours and minutes"):
            interval_schedule(interval, "UTC")
        with pytest.raises(ValidationError, match="an interval must be days, hours and minutes"):
            RunConfig.model_validate({"source": "a", "deploy": {"interval": interval}})


def test_interval_in_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a time zone"):
        interval_schedule("1h", "Mars/Olympus")


def test_two_schedules_are_refused() -> None:
    with pytest.raises(ValidationError, match="cron and interval are two schedules"):
        RunConfig.model_validate({"source": "a", "deploy": {"cron": "0 6 * * *", "interval": "4h"}})


def test_a_schedule_without_any_date_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'0 6 31 2 \*' has no date"):
        parse_schedule("0 6 31 2 *", "UTC")
    assert parse_schedule("@daily", "Europe/Berlin") == {"cron": "@daily", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize("name", ["a/b", "a b", "*", "-a", "a%", "n" * 101])
def test_name_that_prefect_forbids_is_refused(assay: Callable[..., Any], name: str) -> None:
    done = assay("deploy", str(CONFIG), "--yaml", f"--name={name}")
    assert (done.code, done.out) == (2, "")
    assert "a name must have up to 100 letters, digits" in done.err


@pytest.mark.parametrize("variable", ["env=3", "=3", "nothing"])
def test_invalid_job_variables_are_refused(assay: Callable[..., Any], variable: str) -> None:
    done = assay("deploy", str(CONFIG), "--yaml", "--job-variable", variable)
    assert (done.code, done.out) == (2, "")
    assert "job variable" in done.err


@pytest.mark.parametrize(
    ("option", "value"),
    [("baselines", "s3://key:geheim@bucket/x"), ("link", "https://me:geheim@reports.example/{name}")],
)
def test_addresses_hold_no_secrets(tmp_path: Path, option: str, value: str) -> None:
    path = tmp_path / "assay.toml"
    table = "deploy.alerts" if option == "link" else "deploy"
    path.write_text(f'[{table}]\n{option} = "{value}"', encoding="utf-8")
    with pytest.raises(ConfigError, match="must hold no password") as refused:
        load_config(path)
    assert "geheim" not in str(refused.value)


def test_invalid_table_is_not_repeated_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    path.write_text("[deploy]\ncron = '0 6 * * *'\ninterval = '4h'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="deploy: cron and interval are two schedules") as refused:
        load_config(path)
    assert "{" not in str(refused.value)


def test_every_place_of_a_parameter_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    launch = {"python": ".venv-vllm/bin/python", "model": "Qwen/Qwen3-8B"}
    said = {"calibration": "labelled/calibration.json", "judge": {"backend": "server", "launch": launch}}
    written = as_parameter(RunConfig.model_validate({"source": "rows.jsonl", "verdict": "probability", **said}))
    assert written["calibration"] == str(tmp_path / "labelled" / "calibration.json")
    assert written["judge"]["launch"] == launch | {"python": str(tmp_path / ".venv-vllm" / "bin" / "python")}
    assert (
        as_parameter(RunConfig(source="rows.jsonl", verdict="probability", calibration="latest"))["calibration"]
        == "latest"
    )


def test_variables_of_a_launched_judge_are_refused_and_not_deployed_as_asterisks() -> None:
    launch = {"python": "python", "model": "m", "environment": {"VLLM_API_KEY": "geheim"}}
    config = RunConfig.model_validate({"source": "a", "judge": {"backend": "server", "launch": launch}})
    with pytest.raises(ConfigError, match="set the variables in the environment of the worker") as refused:
        build_specs(plan_deployments(config))
    assert "geheim" not in str(refused.value)


def test_an_index_that_no_event_can_have_is_refused() -> None:
    for index in ("", "a b", "hand/book", "!handbook"):
        with pytest.raises(ValidationError, match=r"deploy\.index"):
            RunConfig.model_validate({"deploy": {"index": index}})
    assert RunConfig.model_validate({"deploy": {"index": "handbook-*"}}).deploy.index == "handbook-*"


def test_secrets_are_named_not_written(tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    path.write_text('[deploy.alerts]\nwebhook = "https://hooks.example/T0/secret"', encoding="utf-8")
    with pytest.raises(ConfigError, match="a secret is given by reference") as refused:
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
    plan = plan_deployments(RunConfig(source="a"))
    with pytest.raises(ConfigError, match="--image NAME"):
        apply(plan, DeploymentTarget(pool="images", pool_type="kubernetes"))
    with pytest.raises(ConfigError, match="cannot run images"):
        apply(plan, DeploymentTarget(pool="processes", pool_type="process", image="x:1"))
    done = apply(plan, DeploymentTarget(pool="images", pool_type="docker", image="rag-assay:local"))
    assert done[0].detail == "docker"
    with pytest.raises(ConfigError, match="has the type docker, not process"):
        apply(plan, DeploymentTarget(pool="images", pool_type="process"))
