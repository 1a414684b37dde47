"""The catalogue of runs: recording, rebuilding, pruning, and several writers."""

import json
import multiprocessing
from datetime import timedelta
from pathlib import Path

import pytest

from metric_core.errors import ConfigError, RunFolderError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import STARTED, RecordedRun, RunCost, missed_run_id
from tests.run_records import distribution_json
from tests.tasks.history.run_folders import START, outcome_of, write_nights, write_run
from tests.waiting import DEAD_SECONDS


def test_a_run_is_recorded_with_its_figures(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.record(write_run(tmp_path / "run", 3, mean=0.75, outcome=outcome_of(0, gate="passed", accepted=True)))
    (run,) = catalogue.runs("nightly")
    assert (run.run_id, run.status, run.rows, run.bad_rows) == ("run-3", "completed", 2, 1)
    assert run.created == START + timedelta(days=3)
    assert Path(run.folder) == tmp_path / "run"
    assert run.cost == RunCost(12.5, 0.0, 40, 30, 10, 900, 10)
    metric = run.metric("faithfulness")
    assert metric is not None
    assert (metric.mean, metric.bounds) == (0.75, (0, 1))
    assert (metric.scored, metric.undefined, metric.failed) == (18, 1, 1)
    assert [metric.low, metric.high] == pytest.approx([0.65, 0.85])
    assert run.versions["system"] == "1.0"
    assert run.versions["index"] == "handbook 1.3"
    assert run.versions["judge"] == "judge-8b r1"
    assert run.versions["prompts"] == {"verdict": "b" * 12}
    assert run.outcome is not None
    assert run.outcome.baseline is not None
    assert (run.outcome.gate, run.outcome.accepted, run.outcome.baseline.run_id) == ("passed", True, "run-0")
    assert catalogue.run("run-3") == run
    assert catalogue.run("run-4") is None


def test_scales_and_labels_are_recorded(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    (metric,) = summary["metrics"]
    scale = distribution_json(4.0, count=7, interval={"low": 3.5, "high": 4.5}, deviation=1.0)
    summary["metrics"] += [
        metric | {"metric": "rubrics", "distribution": None, "scales": {"1-5": scale, "0-1": scale}},
        metric | {"metric": "style", "distribution": None, "categories": {"formal": 3, "plain": 9}},
    ]
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    catalogue.record(folder)
    (run,) = catalogue.runs()
    found = {(each.metric, each.slice_column, each.slice): (each.mean, each.scored) for each in run.metrics}
    assert found == {
        ("faithfulness", "", ""): (0.8, 18),
        ("rubrics", "", ""): (None, 18),
        ("rubrics on 1-5", "", ""): (4.0, 7),
        ("rubrics on 0-1", "", ""): (4.0, 7),
        ("style", "", ""): (None, 18),
        ("style = plain", "", ""): (0.75, 12),
        ("style = formal", "", ""): (0.25, 12),
    }


def test_recording_again_replaces_the_entry(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0, mean=0.2)
    catalogue.record(folder)
    catalogue.record(write_run(folder, 0, mean=0.4, outcome=outcome_of(None, message="first")))
    (run,) = catalogue.runs("nightly")
    assert [metric.mean for metric in run.metrics] == [0.4]
    assert run.outcome is not None
    assert run.outcome.message == "first"


def test_a_failed_run_is_recorded_without_figures(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0, status="failed", reason="the judge is down")
    catalogue.record(folder)
    (run,) = catalogue.runs("nightly")
    assert (run.status, run.reason, run.metrics) == ("failed", "the judge is down", ())
    assert "data" not in run.versions  # the tables may be those of an earlier run in the folder


def test_runs_are_ordered_by_time_and_kept_by_name(catalogue: Catalogue, tmp_path: Path) -> None:
    for night in (2, 0, 1):
        catalogue.record(write_run(tmp_path / str(night), night))
    catalogue.record(write_run(tmp_path / "other", 9, name="weekly"))
    assert [run.run_id for run in catalogue.runs("nightly")] == ["run-0", "run-1", "run-2"]
    assert [run.run_id for run in catalogue.runs("nightly", last=2)] == ["run-1", "run-2"]
    assert len(catalogue.runs()) == 4
    assert catalogue.names() == ["weekly", "nightly"]


def test_a_history_is_rebuilt_and_broken_folders_are_named(catalogue: Catalogue, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    write_nights(root, 3)
    write_run(root / "deeper" / "night-3", 3)
    write_run(root / "night-0" / "anchor", 77)  # belongs to the run
    (root / "notes").mkdir()
    broken = {
        "damaged": "cannot be read",
        "halfway": "status is 'running'",
        "no-summary": "summary.json",
        "outcome": "outcome",
        "without-manifest": "no run.json",
    }
    for number, name in enumerate(broken):
        write_run(root / name, 10 + number, status="running" if name == "halfway" else "completed")
    (root / "damaged" / "run.json").write_text('{"format": 1, "stat', encoding="utf-8")
    (root / "no-summary" / "summary.json").unlink()
    (root / "outcome" / "outcome.json").write_text("[]", encoding="utf-8")
    (root / "without-manifest" / "run.json").unlink()
    report = catalogue.rebuild([root, root / "night-1"])
    assert report.recorded == 4
    assert [Path(each.folder).name for each in report.skipped] == list(broken)
    for skipped in report.skipped:
        assert broken[Path(skipped.folder).name] in skipped.problem
    assert [run.run_id for run in catalogue.runs()] == ["run-0", "run-1", "run-2", "run-3"]
    (root / "night-0" / "run.json").unlink()
    assert catalogue.rebuild([root]).recorded == 3
    assert len(catalogue.runs()) == 4  # a history outlives run folders


@pytest.mark.parametrize("entry", [{"run_id": None}, {"created": "yesterday"}, {"usage": {"requests": "many"}}])
def test_an_entry_that_makes_no_sense_is_named(catalogue: Catalogue, tmp_path: Path, entry: dict[str, object]) -> None:
    folder = write_run(tmp_path / "run", 0)
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8")) | entry
    (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"run\.json cannot be read"):
        catalogue.record(folder)


def test_a_root_that_is_not_there_is_an_error(catalogue: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"there is no folder .*nowhere"):
        catalogue.rebuild([tmp_path / "nowhere"])


def test_pruning_keeps_the_last_runs_and_their_baselines(catalogue: Catalogue, tmp_path: Path) -> None:
    for night in range(6):
        catalogue.record(write_run(tmp_path / str(night), night, outcome=outcome_of(1 if night else None)))
    catalogue.record(write_run(tmp_path / "weekly", 0, name="weekly", run_id="weekly"))
    assert catalogue.prune() == []
    removed = catalogue.prune(keep_last=2, dry_run=True)
    assert [run.run_id for run in removed] == ["run-0", "run-2", "run-3"]
    assert len(catalogue.runs("nightly")) == 6
    assert catalogue.prune(keep_last=2, before=START + timedelta(days=3)) == [
        run for run in removed if run.run_id != "run-3"
    ]
    assert [run.run_id for run in catalogue.runs("nightly")] == ["run-1", "run-3", "run-4", "run-5"]
    assert [run.run_id for run in catalogue.runs("weekly")] == ["weekly"]


def test_pruning_counts_runs_that_took_place(catalogue: Catalogue, tmp_path: Path) -> None:
    for night in (0, 1, 2):
        catalogue.record(write_run(tmp_path / str(night), night))
    for night in (-1, 3, 4, 5):
        catalogue.add(missed_night(night))
    assert [run.created for run in catalogue.prune(keep_last=3, dry_run=True)] == [START - timedelta(days=1)]
    removed = catalogue.prune(keep_last=2)
    assert [run.created for run in removed] == [START - timedelta(days=1), START]
    assert len(catalogue.runs("nightly", statuses=STARTED)) == 2


def missed_night(night: int, run_id: str = "") -> RecordedRun:
    due = START + timedelta(days=night)
    run_id = run_id or missed_run_id("nightly", due)
    return RecordedRun.without_results(run_id, "nightly", due, "missed", "no worker was there", "schedule")


def failed_night(night: int, run_id: str = "flow-run", reason: str = "no such file") -> RecordedRun:
    due = START + timedelta(days=night)
    started = due + timedelta(minutes=3, microseconds=7)
    return RecordedRun.without_results(run_id, "nightly", started, "failed", reason, "schedule", due=due)


def start_of(night: int) -> dict[str, str]:
    return {"trigger": "schedule", "due": (START + timedelta(days=night)).isoformat()}


def test_runs_without_results_have_entries(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.record(write_run(tmp_path / "run", 0, start=start_of(0)))
    catalogue.add(failed_night(1))
    catalogue.add(missed_night(2))
    assert catalogue.runs("nightly")[1:] == [failed_night(1), missed_night(2)]
    first, second, third = catalogue.runs("nightly", metrics=False)
    assert (first.trigger, first.due, first.has_result, first.metrics) == ("schedule", START, True, ())
    assert (second.status, second.reason, second.folder, second.has_result) == ("failed", "no such file", "", False)
    assert second.created == START + timedelta(days=1, minutes=3, microseconds=7)
    assert (third.status, third.due, third.created) == ("missed", START + timedelta(days=2), third.due)
    assert [run.run_id for run in catalogue.runs("nightly", statuses=STARTED)] == ["run-0", "flow-run"]
    assert [run.run_id for run in catalogue.runs("nightly", since=second.created)] == ["flow-run", third.run_id]
    assert catalogue.runs("nightly", last=1, statuses=STARTED) == [second]
    assert len(missed_run_id("a name that is much longer than the column of the database " * 3, START)) <= 64


def test_the_trigger_of_entries_that_lack_it_is_that_of_the_outcome(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.record(write_run(tmp_path / "run", 0, outcome=outcome_of(None)))
    (run,) = catalogue.runs("nightly")
    assert (run.trigger, run.due) == ("schedule", None)


def test_runs_that_were_due_at_the_same_time_are_one(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.add(missed_night(0))
    catalogue.add(missed_night(0, run_id="of the server"))
    assert [run.run_id for run in catalogue.runs()] == ["of the server"]
    catalogue.add(failed_night(0))
    catalogue.add(missed_night(0))  # says less
    assert [run.run_id for run in catalogue.runs()] == ["flow-run"]
    catalogue.add(failed_night(0, "second attempt", "another reason"))
    assert [(run.run_id, run.reason) for run in catalogue.runs()] == [("second attempt", "another reason")]
    catalogue.record(write_run(tmp_path / "died", 0, start=start_of(0), status="failed", reason="the judge is down"))
    catalogue.add(failed_night(0))
    assert [(run.run_id, run.reason) for run in catalogue.runs()] == [("run-0", "the judge is down")]
    catalogue.add(missed_night(1))
    assert len(catalogue.runs()) == 2
    for microseconds in (1, 2):  # two runs by hand in one second
        started = START + timedelta(days=2, microseconds=microseconds)
        add = RecordedRun.without_results
        catalogue.add(add(f"hand-{microseconds}", "nightly", started, "failed", "no such file", "manual"))
    assert len(catalogue.runs()) == 4


def test_an_evaluation_whose_monitored_run_failed_afterwards_has_its_reason(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    catalogue.record(write_run(tmp_path / "run", 0, start=start_of(0)))
    catalogue.record(write_run(tmp_path / "few", 1, start=start_of(1), failures=["too few scores"]))
    for night in (0, 1):
        catalogue.add(failed_night(night, reason="the baseline cannot be read"))
        catalogue.add(missed_night(night))
    first, second = catalogue.runs("nightly")
    assert (first.status, first.reason, first.has_result) == ("completed", "the baseline cannot be read", False)
    assert (second.reason, second.failures, second.has_result) == ("", ("too few scores",), False)
    assert first.metrics != ()


def test_two_processes_write_at_once(url: str, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    write_nights(root, 20)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_rebuild, args=(url, root)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(DEAD_SECONDS)
    assert [worker.exitcode for worker in workers] == [0, 0]
    runs = Catalogue(url).runs("nightly")
    assert [run.run_id for run in runs] == [f"run-{night}" for night in range(20)]
    assert {len(run.metrics) for run in runs} == {1}


def _rebuild(url: str, root: Path) -> None:
    for _ in range(3):
        assert Catalogue(url).rebuild([root]).recorded == 20


def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_text("no database " * 400, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"history .*history\.db cannot be read: .*assay history --rebuild"):
        Catalogue(str(tmp_path / "history.db")).runs()


def test_an_address_may_be_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TEST_HISTORY", "postgresql://me:hunter2@127.0.0.1:1/history")
    with pytest.raises(ConfigError, match="the history env:ASSAY_TEST_HISTORY cannot be read") as caught:
        Catalogue("env:ASSAY_TEST_HISTORY").runs()
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="PGPASSWORD"):
        Catalogue("postgresql://me:hunter2@127.0.0.1:1/history")
    monkeypatch.setenv("ASSAY_TEST_HISTORY", str(tmp_path / "named.db"))
    assert Catalogue("env:ASSAY_TEST_HISTORY").runs() == []
    assert (tmp_path / "named.db").exists()
    monkeypatch.setenv("ASSAY_TEST_HISTORY", "postgresql://me:hunter2@host:port/history")
    with pytest.raises(ConfigError, match="the URL of the history cannot be read") as caught:
        Catalogue("env:ASSAY_TEST_HISTORY")
    assert "hunter2" not in str(caught.value)


def test_the_default_is_a_file_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    assert Catalogue().runs() == []
    assert (tmp_path / "history.db").exists()
