"""Monitored nights whose run folders are written by the tests instead of evaluations."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import flows.monitor
from flows.config.run_config import RunConfig
from flows.monitor import run_monitor
from flows.monitoring.monitored_run import MonitoredRun
from metric_core.errors import JudgeError
from tasks.history.catalogue import Catalogue
from tasks.record.outcome import RunOutcome, Trigger
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_start import start_entry
from tests.tasks import compared

GATE = {"absolute": ["faithfulness.mean >= 0.5"], "regression": [{"max_drop": 0.1, "metrics": ["faithfulness"]}]}
START = datetime(2026, 11, 16, 6, tzinfo=UTC)


class Nights:
    """An evaluation that is monitored night after night.

    Args:
        folder: Folder of all its files.

    Attributes:
        ahead: Time by which the clock of the machine is ahead.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.deploy: dict[str, Any] = {
            "baselines": str(folder / "baselines"),
            "alerts": {"file": str(folder / "alerts.jsonl")},
            "gate": GATE,
        }
        self.history = Catalogue(str(folder / "history.db"))
        self.folders: list[Path] = []
        self.baselines: list[Path | None] = []
        self.ahead = timedelta(0)
        self._next: tuple[float, dict[str, Any]] = (0.8, {})
        self._told = 0

    def run(self, level: float = 0.8, **manifest: Any) -> tuple[str, RunOutcome]:
        """Run a night.

        Args:
            level: Faithfulness of the night's responses.
            manifest: Arguments of `compared.write_run`.

        Returns:
            The verdict, and the outcome in the run folder.
        """
        self.prepare(level, **manifest)
        done = run_monitor(self.configuration())
        outcome = read_outcome(self.folders[-1])
        assert outcome is not None
        assert done.folder == self.folders[-1]
        return done.verdict, outcome

    def prepare(self, level: float, **manifest: Any) -> None:
        """Choose what the next night is like.

        Args:
            level: Faithfulness of the night's responses.
            manifest: Arguments of `compared.write_run`.
        """
        self._next = (level, manifest)

    def configuration(self) -> RunConfig:
        """Return the configuration of the nights."""
        content = {"name": "support", "source": "answers.jsonl", "history": str(self.folder / "history.db")}
        return RunConfig.model_validate({**content, "deploy": self.deploy})

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts since the last call."""
        path = self.folder / "alerts.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        new, self._told = lines[self._told :], len(lines)
        return [json.loads(line) for line in new]

    def evaluate(self, _config: RunConfig, _watched: MonitoredRun, baseline: Path | None) -> Path:
        """Write the run folder of a night; a night without a level has a judge that is down."""
        self.baselines.append(baseline)
        level, manifest = self._next
        number = len(self.folders) + 1
        if level < 0:
            raise JudgeError(f"the judge is down in attempt {number}")
        started = (START + timedelta(days=number - 1) + self.ahead).isoformat()
        folder = self.folder / f"night-{number}"
        start = None if (given := start_entry()) is None else given.to_json()
        entries = {"run_id": f"night-{number}", "created": started, "name": "support", "start": start}
        self.folders.append(compared.write_run(folder, level, **{**entries, **manifest}))
        self.history.record(folder)
        return folder


@pytest.fixture
def nights(tmp_path: Path, prefect_stub: object, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """Return nights, each of which begins a day after the night before."""
    del prefect_stub
    return _make_nights(tmp_path, monkeypatch)


@pytest.fixture
def served_nights(tmp_path: Path, prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> Nights:
    """Return nights on a real Prefect server."""
    del prefect_server
    return _make_nights(tmp_path, monkeypatch)


def _make_nights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    made = Nights(folder)
    monkeypatch.setattr(flows.monitor, "_evaluate", made.evaluate)
    monkeypatch.setattr(MonitoredRun, "now", _a_day_later(made, MonitoredRun.now))
    return made


def _a_day_later(
    nights: Nights, now: Callable[[RunConfig, Trigger], MonitoredRun]
) -> Callable[[RunConfig, Trigger], MonitoredRun]:
    numbers = count()

    def later(config: RunConfig, trigger: Trigger) -> MonitoredRun:
        time = START + timedelta(days=next(numbers)) + nights.ahead
        return replace(now(config, trigger), version=f"{time:%Y-%m-%dT%H:%M:%SZ}", announced=time)

    return later
