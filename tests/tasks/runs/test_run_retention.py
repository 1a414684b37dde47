"""Removal of run folders: never baselines, runs in progress, other folders, or more than the policy says."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.prune import PruneSettings, run_prune
from metric_core.errors import AssayError, ConfigError
from metric_core.statistics.run_panel import FIRST_RUNS
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.record.outcome import OutcomeBaseline, RunOutcome
from tasks.runs.run_folder import RunFolder
from tasks.runs.run_retention import RetentionPolicy, accepted_folders, find_expired, remove_runs

NOW = datetime.now(UTC)


def write(root: Path, name: str, days: float, deployment: str | None = "nightly", **more: Any) -> Path:
    folder = root / name
    (folder / "stages").mkdir(parents=True)
    created = (NOW - timedelta(days=days)).isoformat()
    about = None if deployment is None else {"name": deployment, "index": "", "version": ""}
    manifest = {"format": 1, "run_id": name, "created": created, "source": "rows.jsonl", "deployment": about, **more}
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with five nightly runs, two of another deployment, one by hand, and a folder that is no run."""
    root = tmp_path / "runs"
    for days in range(1, 6):
        write(root, f"n{days}", days)
    for days in (2, 90):
        write(root, f"w{days}", days, "weekly")
    write(root, "hand", 80, None)
    (root / "notes").mkdir()
    (root / "notes" / "run.json").write_text('{"mine": 1}', encoding="utf-8")
    return root


def find_names(root: Path, keep_last: int | None = None, days: float | None = None, *kept: Path) -> list[str]:
    before = None if days is None else NOW - timedelta(days=days)
    return [run.path.name for run in find_expired(root, RetentionPolicy(keep_last, before), kept)]


def test_each_rule_keeps_its_runs(runs: Path) -> None:
    assert find_names(runs) == []
    assert find_names(runs, keep_last=2) == ["n5", "n4", "n3"]  # both weekly runs are among the last
    assert find_names(runs, days=30) == ["w90", "hand"]
    assert find_names(runs, keep_last=1, days=3.5) == ["w90", "n5", "n4"]
    write(runs, "new", 0.01)
    assert "new" not in find_names(runs, days=0)


def test_baselines_and_runs_in_progress_stay(runs: Path) -> None:
    with RunFolder(runs / "n5").lock():
        assert find_names(runs, 1, 0, runs / "n4") == ["w90", "n3", "n2"]
        doomed = find_expired(runs, RetentionPolicy(1, NOW), ())
    assert [run.path.name for run in doomed] == ["w90", "n4", "n3", "n2"]
    with RunFolder(runs / "n3").lock():  # begins after the listing
        assert [run.path.name for run in remove_runs(runs, doomed)] == ["w90", "n4", "n2"]
    assert {path.name for path in runs.iterdir()} == {"n1", "n3", "n5", "w2", "hand", "notes"}


def test_baselines_of_every_layout_are_found(tmp_path: Path) -> None:
    store = tmp_path / "baselines"
    for place in ("handbook/a.json", "handbook/nightly/b.json"):
        (store / place).parent.mkdir(parents=True, exist_ok=True)
        record = {"folder": f"/data/runs/{place[-6]}", "why": "first", "format": 1}
        (store / place).write_text(json.dumps(record), encoding="utf-8")
    write(store / "handbook", "copy", 1)  # at a URL, run folders are stored beside the records
    assert accepted_folders(str(store)) == {Path("/data/runs/a"), Path("/data/runs/b")}
    assert accepted_folders(str(tmp_path / "none")) == frozenset()


def test_nothing_is_removed_if_a_baseline_cannot_be_read(runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "baselines" / "handbook"
    store.mkdir(parents=True)
    (store / "a.json").write_text("{", encoding="utf-8")
    before = sorted(runs.rglob("*"))
    settings = PruneSettings(runs=str(runs), keep_last_runs=1, baselines=str(store.parent), dry_run=False)
    with pytest.raises(AssayError, match="it is not known which runs must be kept; none was removed"):
        run_prune(settings)
    assert sorted(runs.rglob("*")) == before


def test_pruning_counts_and_removes_run_folders(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    settings = PruneSettings(runs=str(runs), keep_last_runs=1)
    report = run_prune(settings)
    assert (report.run_folders, report.run_folders_bytes > 0) == (5, True)
    assert (runs / "n5").exists()
    assert run_prune(settings.model_copy(update={"dry_run": False})) == replace(report, dry_run=False)
    assert {path.name for path in runs.iterdir()} == {"n1", "w2", "hand", "notes"}
    with pytest.raises(ConfigError, match="name the folder of run folders"):
        run_prune(PruneSettings(keep_last_runs=1))


def test_runs_that_alarms_compare_with_stay_as_long_as_their_baseline(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    baseline = write(runs, "accepted", FIRST_RUNS + 1)
    store = tmp_path / "home" / "baselines" / "handbook"
    store.mkdir(parents=True)
    record = {"folder": str(baseline), "why": "first", "format": 1}
    (store / "a.json").write_text(json.dumps(record), encoding="utf-8")
    named = OutcomeBaseline(run_id=baseline.name, folder=str(baseline), version="1")
    outcome = RunOutcome(name="nightly", trigger="schedule", baseline=named)
    for days in range(FIRST_RUNS, 0, -1):
        name = f"n{days}"
        folder = runs / name if days < 6 else write(runs, name, days)
        run = RecordedRun(name, "nightly", NOW - timedelta(days=days), str(folder), "completed", outcome=outcome)
        Catalogue().add(run)
    settings = PruneSettings(runs=str(runs), keep_last_runs=1, dry_run=False)
    assert run_prune(settings).run_folders == 1  # the old weekly run
    later = RecordedRun("n0", "nightly", NOW, str(write(runs, "n0", 0)), "completed", outcome=outcome)
    Catalogue().add(later)
    assert run_prune(settings).run_folders == 1
    assert {path.name for path in runs.iterdir() if path.name[0] in "na"} - {"notes"} == {
        "accepted",
        "n0",
        *(f"n{days}" for days in range(2, FIRST_RUNS + 1)),
    }
    (store / "a.json").unlink()
    assert run_prune(settings).run_folders == FIRST_RUNS
