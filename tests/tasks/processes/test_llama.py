"""A model file is served by llama.cpp: launched, measured and explained as vLLM is."""

import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from metric_core.errors import ConfigError, JudgeError
from tasks.options.launch_backends import LAUNCH_BACKENDS, BackendName
from tasks.options.launch_options import LaunchSettings
from tasks.processes import speed
from tasks.processes.install import Pins
from tasks.processes.judge_service import find_speed, judge_status, launch_judge
from tasks.processes.launch_command import build_command
from tests.structure.house import ROOT
from tests.tasks.processes.conftest import Settings
from tests.tasks.processes.test_launching import said_by
from tests.tasks.runtime.gguf_files import write_gguf


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(write_gguf(tmp_path / "tiny-q4.gguf"))


def test_every_name_has_a_row_whose_files_are_packaged() -> None:
    assert set(get_args(BackendName)) == set(LAUNCH_BACKENDS)
    for backend in LAUNCH_BACKENDS.values():
        pins = Pins.read(ROOT / "deployments" / "container" / backend.pins)
        assert backend.package in pins.versions
        assert backend.run[0] == "-m" or Path(backend.run[0]).is_file()


def test_the_environment_of_this_folder_serves_unless_another_is_named(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = LaunchSettings(model=model)
    with pytest.raises(ConfigError, match=r"'\.venv-llama/bin/python', .* Make it with `assay judge install --cpu`"):
        build_command(settings, 8001, {}, "judge")
    python = tmp_path / ".venv-llama" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    words = build_command(settings, 8001, {}, "judge").words
    assert words[:4] == (str(python), str(ROOT / "tasks/processes/serve_gguf.py"), "--model", model)
    assert " ".join(words[4:]).startswith("--alias tiny-q4 --host 127.0.0.1 --port 8001 --slots ")


def test_it_is_launched_and_its_speed_is_measured_and_kept(home: Path, settings: Settings, model: str) -> None:
    judge = launch_judge(settings(model=model, extra_args=["cpuparams.poll=0"]), home)
    said = said_by(judge)
    assert {"--alias", "tiny-q4", "cpuparams.poll=0", "DO_NOT_TRACK=1"} <= set(said)
    assert judge.speed is not None
    assert find_speed(home, [judge.url]) == judge.speed
    assert find_speed(home, ["http://elsewhere:1/v1"]) is None
    shown = str(judge_status(home))
    assert "serves tiny-q4 with llama.cpp (ready" in shown
    assert "tokens per second, log" in shown


def test_one_that_does_not_tell_its_tokens_has_no_speed(home: Path, settings: Settings, model: str) -> None:
    judge = launch_judge(settings("mute", model=model), home)
    assert judge.speed is None
    assert "tokens per second" not in str(judge_status(home))


def test_one_that_ends_is_explained_by_the_errors_of_its_log(home: Path, settings: Settings, model: str) -> None:
    with pytest.raises(JudgeError, match=r"(?s)launch llama\.cpp yourself.*Errors in it:\n +srv  init: exiting"):
        launch_judge(settings("damaged", model=model), home)


def test_a_file_that_is_missing_is_refused_before_anything_starts(home: Path, settings: Settings) -> None:
    with pytest.raises(ConfigError, match=r"there is no file nothing\.gguf"):
        launch_judge(settings(model="nothing.gguf"), home)
    assert not (home / "judge" / "judge.json").exists()


def test_a_python_without_the_package_is_explained(home: Path, model: str) -> None:
    with pytest.raises(JudgeError, match=r"Its Python has no llama\.cpp: `assay judge install --cpu` makes one"):
        launch_judge(LaunchSettings(python=sys.executable, model=model), home)


def test_reading_and_writing_are_measured_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(_client: Any, _url: str, _model: str, _prompt: str, tokens: int) -> tuple[int, int, float]:
        return (300, 1, 6.0) if tokens == 1 else (1, 48, 4.0)

    monkeypatch.setattr(speed, "_ask", answer)
    assert speed.measure_speed("http://judge/v1", "tiny") == (50.0, 12.0)
