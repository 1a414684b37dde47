"""Settings that launch the small server, and a home whose judge is stopped after the test."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import JudgeService, stop_judge
from tasks.processes.system_processes import group_members
from tests.tasks.processes import fake_vllm

ROOT = Path(__file__).parents[3]

Settings = Callable[..., LaunchSettings]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose judge is stopped after the test, the stubborn ones soon."""
    monkeypatch.setattr(JudgeService, "stop_seconds", 1.0)
    home = tmp_path / "home"
    yield home
    stop_judge(home)


@pytest.fixture
def settings() -> Settings:
    """Settings of the small server, by its behaviour."""

    def of(behaviour: str = "", **others: object) -> LaunchSettings:
        environment = {"PYTHONPATH": str(ROOT), "FAKE_VLLM": behaviour, **dict(others.pop("environment", {}))}  # type: ignore[call-overload]
        values = {"python": sys.executable, "model": "tiny", "entry": fake_vllm.__name__, "start_timeout": 30.0}
        return LaunchSettings.model_validate({**values, "environment": environment, **others})

    return of


def is_gone(pid: int) -> bool:
    """Return whether no process of a judge is left."""
    return not any(group_members(pid))
