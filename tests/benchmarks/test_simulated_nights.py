"""The simulated nights that the benchmark and the picture of the history show are runs that the history can read."""

from pathlib import Path

from benchmarks import history_page as history
from tasks.history.catalogue import Catalogue


def test_every_simulated_night_is_recorded_with_its_figures(tmp_path: Path) -> None:
    nights = 40
    history.write_runs(tmp_path / "nights", nights, slices=2)
    catalogue = Catalogue(str(tmp_path / "history.db"))
    report = catalogue.rebuild([tmp_path / "nights"])
    assert report.skipped == ()
    assert report.recorded > 30
    history.record_missed(catalogue, nights)
    runs = catalogue.runs(history.NAME)
    assert len(runs) == nights
    finished = [run for run in runs if run.outcome is not None]
    assert {len(run.metrics) for run in finished} == {3 * len(history.METRICS)}  # of all rows, and of two slices
    assert any(run.outcome.alarms for run in finished if run.outcome is not None)
