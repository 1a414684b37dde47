"""Runs with other questions than the run before are compared with it over the questions of both."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from metric_core.columns import QUESTION_KIND, SINCE, WRITTEN_FROM
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import KeptQuestions, VersionChange, find_changes_between
from tasks.reports.history.history_text import change_lines, describe_kept
from tests.tasks import compared

WRITTEN = {QUESTION_KIND: "cloze", SINCE: "1", WRITTEN_FROM: []}


def write(folder: Path, day: int, rows: range, level: float, **more: Any) -> Path:
    """Write the run of a day on rows with these numbers, each with a faithfulness near a level."""
    created = f"2026-03-{day:02}T06:00:00+00:00"
    return compared.write_run(
        folder, level, first=rows.start, rows=len(rows), run_id=folder.name, created=created, **more
    )


def mean(rows: Iterable[int], level: float) -> float:
    """The mean faithfulness of rows, as `compared.write_run` makes it."""
    values = [level + number % 3 * 0.05 for number in rows]
    return sum(values) / len(values)


@pytest.fixture
def history(tmp_path: Path) -> Catalogue:
    return Catalogue(str(tmp_path / "history.db"))


def test_the_questions_of_both_runs_are_compared_and_the_others_counted(history: Catalogue, tmp_path: Path) -> None:
    history.record(write(tmp_path / "a", 1, range(31), 0.5, extras=WRITTEN))
    history.record(write(tmp_path / "b", 2, range(7, 36), 0.4, extras=WRITTEN))
    first, second = history.runs()
    assert (first.kept, second.kept is None) == (None, False)
    kept = second.kept
    assert kept is not None
    assert (kept.run_id, kept.rows, kept.changed, kept.gone, kept.retired, kept.new) == ("a", 24, 0, 7, 7, 5)
    assert kept.figures.keys() == {"faithfulness", "noise_sensitivity"}
    expected = [mean(range(7, 31), level) for level in (0.5, 0.4)]
    assert kept.figures["faithfulness"] == pytest.approx(expected, abs=1e-12)
    whole = second.metric("faithfulness")
    assert whole is not None
    assert whole.mean != pytest.approx(expected[1], abs=1e-4)  # the mean of all rows is of others
    (line,) = change_lines([first, second])
    assert line == (
        "2026-03-02 06:00  questions and references changed: 24 as in the run of 2026-03-01 06:00, 7 retired, 5 new; "
        f"over the 24: faithfulness {expected[0]:.3f} -> {expected[1]:.3f}, noise_sensitivity 0.350 -> 0.450"
    )


def test_rows_with_another_reference_do_not_count(history: Catalogue, tmp_path: Path) -> None:
    history.record(write(tmp_path / "a", 1, range(10), 0.5))
    folder = write(tmp_path / "b", 2, range(10), 0.4)
    compared.change_reference(folder, "row-03")
    kept = history.record(folder).kept
    assert kept is not None
    assert (kept.rows, kept.changed, kept.gone, kept.new) == (9, 1, 0, 0)
    rows = [number for number in range(10) if number != 3]
    assert kept.figures["faithfulness"] == pytest.approx([mean(rows, 0.5), mean(rows, 0.4)], abs=1e-12)


@pytest.mark.parametrize("case", ["the same questions", "no question in common", "the folder is gone", "another run"])
def test_runs_that_share_nothing_that_differs_are_not_compared(history: Catalogue, tmp_path: Path, case: str) -> None:
    rows = {"the same questions": range(20), "no question in common": range(20, 40)}.get(case, range(10, 30))
    history.record(write(tmp_path / "a", 1, range(20), 0.5))
    if case in {"the folder is gone", "another run"}:
        shutil.rmtree(tmp_path / "a")
    if case == "another run":
        write(tmp_path / "c", 3, range(20), 0.5).rename(tmp_path / "a")
    assert history.record(write(tmp_path / "b", 2, rows, 0.4)).kept is None


def test_rebuilding_compares_each_run_with_the_one_before(history: Catalogue, tmp_path: Path) -> None:
    for name, day, rows in (("a", 3, range(10, 20)), ("b", 2, range(5, 15)), ("c", 1, range(10))):
        write(tmp_path / "runs" / name, day, rows, 0.5)
    assert history.rebuild([tmp_path / "runs"]).recorded == 3
    found = {run.run_id: run.kept and (run.kept.run_id, run.kept.rows) for run in history.runs()}
    assert found == {"c": None, "b": ("c", 5), "a": ("b", 5)}


def test_a_failed_run_in_between_hides_no_change(history: Catalogue, tmp_path: Path) -> None:
    history.record(write(tmp_path / "a", 1, range(20), 0.5))
    history.record(write(tmp_path / "b", 2, range(20), 0.5, status="failed", reason="the judge is down"))
    history.record(write(tmp_path / "c", 3, range(5, 20), 0.5))
    runs = history.runs()
    (change,) = find_changes_between(runs)["c"]
    assert change == VersionChange("data", runs[0].versions["data"], runs[2].versions["data"], kept=runs[2].kept)
    assert change.kept is not None
    assert change.kept.run_id == "a"


def test_counts_are_read_as_counts_and_means_as_means() -> None:
    adapter = TypeAdapter(KeptQuestions)
    figures = {"key_point_recall": (0.7, 1.0), "key points lost by the index": (2, 4)}
    kept = KeptQuestions("1", "2026-03-01T06:00", 24, 0, 0, 0, 0, figures)
    read = adapter.validate_json(adapter.dump_json(kept))
    assert describe_kept(read) == describe_kept(kept)
    assert "key_point_recall 0.700 -> 1.000, key points lost by the index 2 -> 4" in describe_kept(read)
