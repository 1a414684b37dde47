"""A judge in a container: the command line, and an engine that does as docker does."""

import os
import sys
from pathlib import Path

import pytest

from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import judge_status, launch_judge, stop_judge
from tasks.processes.launch_command import build_command
from tests.tasks.processes.conftest import ROOT, is_gone

ENGINE = """#!{python}
import os, subprocess, sys
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
if sys.argv[1] == "run":
    image = sys.argv.index("image")
    host, _, port = sys.argv[sys.argv.index("--publish") + 1].rpartition(":")
    sys.exit(subprocess.run([sys.executable, "-m", {module!r}, *sys.argv[image + 1 :]]).returncode)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A program that takes `run` and `rm` as docker does; what it was asked to do is in the file `log` beside it."""
    path = tmp_path / "docker"
    path.write_text(
        ENGINE.format(python=sys.executable, log=str(tmp_path / "log"), module="tests.tasks.processes.fake_vllm")
    )
    path.chmod(0o755)
    return path


def test_options_go_between_run_and_the_image() -> None:
    settings = LaunchSettings.model_validate(
        {
            "container": ["env", "run", "--gpus", "all", "image"],
            "model": "tiny",
            "environment": {"HF_TOKEN": "hf_secret"},
        }
    )
    command = build_command(settings, 8001, {}, "judge-1")

    words = " ".join(command.words[1:])
    assert words.startswith("run --rm --name judge-1 --env VLLM_NO_USAGE_STATS=1 --env DO_NOT_TRACK=1")
    assert "--env HF_TOKEN --publish 127.0.0.1:8001:8001 --gpus all image tiny --enable-prompt-tokens-details" in words
    assert words.endswith("--host 0.0.0.0 --port 8001")
    assert command.cleanup == ("env", "rm", "--force", "judge-1")
    assert "hf_secret" not in words
    assert command.environment["HF_TOKEN"] == "hf_secret"


@pytest.mark.parametrize("network", [["--network=host"], ["--network", "host"], ["--net=host"]])
def test_in_the_network_of_the_host_it_listens_there_and_publishes_nothing(network: list[str]) -> None:
    settings = LaunchSettings.model_validate({"container": ["env", "run", *network, "image"], "model": "tiny"})
    words = build_command(settings, 8001, {}, "judge-1").words
    assert "--publish" not in words
    assert words[-4:] == ("--host", "127.0.0.1", "--port", "8001")


def test_a_container_is_launched_and_removed(home: Path, engine: Path) -> None:
    settings = LaunchSettings.model_validate(
        {"container": [str(engine), "run", "image"], "model": "tiny", "environment": {"PYTHONPATH": str(ROOT)}}
    )
    judge = launch_judge(settings, home)
    assert judge_status(home).healthy

    assert stop_judge(home)
    assert is_gone(judge.pid)
    asked = (engine.parent / "log").read_text().splitlines()
    name = asked[0].split()[asked[0].split().index("--name") + 1]
    assert asked[1:] == [f"rm --force {name}"]


def test_the_judges_environment_has_nothing_of_this_python_and_of_prefect() -> None:
    settings = LaunchSettings(python=sys.executable, model="tiny")
    inherited = {"PATH": os.environ["PATH"], "PYTHONPATH": "here", "VIRTUAL_ENV": "here", "PREFECT_API_KEY": "key"}
    environment = build_command(settings, 8001, inherited, "judge-1").environment
    assert not environment.keys() & {"PYTHONPATH", "VIRTUAL_ENV", "PREFECT_API_KEY"}
    assert environment["PATH"] == os.environ["PATH"]
