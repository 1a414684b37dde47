"""Telemetry is off, and servers listen on this machine only, in every process that rag-assay starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deployments.local_server.local_server import LocalServer
from deployments.local_server.server_process import LOOPBACK
from tasks.options.launch_options import LaunchSettings
from tasks.processes.launch_command import build_command
from tasks.runtime.telemetry import NO_TELEMETRY, PREFECT, VLLM, disable_telemetry

ROOT = Path(__file__).parents[2]
SILENT = {"DO_NOT_TRACK": "1"}
CONTAINERS = ROOT / "deployments" / "container"
OF_CI = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILD_NUMBER", "BUILDKITE", "CIRCLECI", "TRAVIS", "TF_BUILD")
"""Variables that disable Prefect's telemetry by themselves, so the test must run without them."""

COMMAND = """
import json, os, sys
from deployments.cli import main
sys.argv = ["assay", "--version"]
try:
    main.main()
except SystemExit:
    pass
from prefect._internal.analytics.enabled import is_telemetry_enabled
from huggingface_hub.constants import HF_HUB_DISABLE_TELEMETRY
print(json.dumps([is_telemetry_enabled(), HF_HUB_DISABLE_TELEMETRY, dict(os.environ)]))
"""
HUB = """
import json
from tasks.sources.readers.huggingface import open_folder
try:
    open_folder("nowhere", None, "nowhere")
except Exception:
    pass
from huggingface_hub.constants import HF_HUB_DISABLE_TELEMETRY
print(json.dumps(HF_HUB_DISABLE_TELEMETRY))
"""


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NO_TELEMETRY, *OF_CI):
        monkeypatch.delenv(name, raising=False)


def output_of(code: str) -> object:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.usefixtures("environment")
def test_telemetry_is_off_in_a_command_and_its_children() -> None:
    said = output_of(COMMAND)
    assert isinstance(said, list)
    prefect_reports, hub_is_silent, variables = said
    assert (prefect_reports, hub_is_silent) == (False, True)
    assert NO_TELEMETRY.items() <= variables.items()


@pytest.mark.usefixtures("environment")
def test_the_hubs_library() -> None:
    assert output_of(HUB) is True


def test_settings_of_the_user_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NO_TELEMETRY:
        monkeypatch.setenv(name, "the user's")
    disable_telemetry()
    assert {os.environ[name] for name in NO_TELEMETRY} == {"the user's"}


def test_the_local_server(tmp_path: Path) -> None:
    inherited = {"DO_NOT_TRACK": "0", "PREFECT_SERVER_ANALYTICS_ENABLED": "true"}
    variables = LocalServer(tmp_path).environment(inherited)
    assert (SILENT | {"PREFECT_SERVER_ANALYTICS_ENABLED": "false"}).items() <= variables.items()


def test_a_launched_judge() -> None:
    wanted = SILENT | {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    settings = LaunchSettings(python=sys.executable, model="m")
    assert wanted.items() <= build_command(settings, 8000, {}, "judge").environment.items()
    container = LaunchSettings(container=(sys.executable, "run", "image"), model="m")
    words = build_command(container, 8000, {}, "judge").words
    assert {f"{name}={value}" for name, value in wanted.items()} <= {*words}
    assert "127.0.0.1:8000:8000" in words


def test_the_image_has_every_variable() -> None:
    words = (CONTAINERS / "Containerfile").read_text(encoding="utf-8").split()
    assert {f"{name}={value}" for name, value in NO_TELEMETRY.items()} <= {*words}


@pytest.mark.parametrize(("service", "wanted"), [("prefect-server", PREFECT), ("worker", PREFECT), ("vllm", VLLM)])
def test_the_services_of_the_compose_file(service: str, wanted: dict[str, str]) -> None:
    described = yaml.safe_load((CONTAINERS / "compose.yaml").read_text(encoding="utf-8"))["services"][service]
    of_image = NO_TELEMETRY if "build" in described else {}
    assert wanted.items() <= {**of_image, **described["environment"]}.items()


def test_servers_listen_on_the_loopback_interface() -> None:
    assert LOOPBACK == "127.0.0.1"
    words = build_command(LaunchSettings(python=sys.executable, model="m"), 8000, {}, "judge").words
    assert words[words.index("--host") + 1] == "127.0.0.1"
    compose = yaml.safe_load((CONTAINERS / "compose.yaml").read_text(encoding="utf-8"))
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_runs_that_workers_start() -> None:
    from deployments.registry.specs import environment

    assert SILENT.items() <= environment().items()
