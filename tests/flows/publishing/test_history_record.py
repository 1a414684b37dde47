"""Recording runs in the history: runs that failed, and a history that cannot be used."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.config.run_config import RunConfig
from flows.execution.run_record import record_run
from flows.publishing.history_record import record_in_history, record_without_results
from metric_core.errors import JudgeError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.runs.run_folder import RunFolder
from tests.run_records import make_record
from tests.tasks.history.run_folders import write_run


def test_a_run_that_dies_is_recorded_with_its_reason(tmp_path: Path) -> None:
    history = str(tmp_path / "history.db")
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    record = make_record(run_id="r1", created="2026-03-01T06:00:00+00:00", name="nightly", status="running")
    with pytest.raises(JudgeError), record_run(folder, record, history):
        raise JudgeError("the judge is gone")
    (run,) = Catalogue(history).runs("nightly")
    assert (run.run_id, run.status, run.reason) == ("r1", "failed", "the judge is gone")


def test_a_history_that_cannot_be_used_is_a_warning(tmp_path: Path) -> None:
    history = tmp_path / "history.db"
    history.write_bytes(b"no database " * 500)
    folder = write_run(tmp_path / "run", 0)
    (warning,) = record_in_history(str(history), folder)
    assert f"`assay history --rebuild {folder}` records it" in warning


def test_the_page_of_the_configuration_is_written_again(tmp_path: Path) -> None:
    history, page = str(tmp_path / "history.db"), tmp_path / "pages" / "{name}.html"
    for night in range(2):
        folder = write_run(tmp_path / f"run-{night}", night, config={"history_page": str(page)})
        assert record_in_history(history, folder) == ()
        text = (tmp_path / "pages" / "nightly.html").read_text(encoding="utf-8")
        assert f'"run-{night}"' in text
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    folder = write_run(tmp_path / "run-2", 2, config={"history_page": str(tmp_path / "taken" / "page.html")})
    (warning,) = record_in_history(history, folder)
    assert "the page of the history was not written" in warning
    assert len(Catalogue(history).runs()) == 3


def test_a_run_without_results_is_on_the_page(tmp_path: Path) -> None:
    due = datetime(2026, 11, 18, 6, tzinfo=UTC)
    run = RecordedRun.without_results("flow-run", "nightly", due, "failed", "no such file", "schedule")
    page = tmp_path / "{name}.html"
    config = RunConfig(history=str(tmp_path / "history.db"), history_page=str(page))
    assert record_without_results(config, run) == ()
    text = (tmp_path / "nightly.html").read_text(encoding="utf-8")
    assert ("did not start" in text, "no such file" in text) == (True, True)
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    blocked = config.model_copy(update={"history_page": str(tmp_path / "taken" / "page.html")})
    (warning,) = record_without_results(blocked, run)
    assert "the page of the history was not written" in warning
    broken = config.model_copy(update={"history": str(tmp_path)})
    (warning,) = record_without_results(broken, run)
    assert warning.startswith("the run was not recorded in the history. the history sqlite:///")
