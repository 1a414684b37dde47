"""A run and a comparison name scores that are worse where references are older, if the data have dates."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.metrics.registry import parse_request
from metric_core.records import Score
from tasks.comparison.run_comparison import comparison_to_dict
from tasks.findings.finding import RunRecords, WrittenRows
from tasks.findings.reference_age.reference_age_finding import ComparedAges, count, how_to_read, sentences
from tasks.reports.comparison.comparison_document import comparison_markdown
from tests.tasks import compared

ROWS = 60
DAYS = [(date(2023, 1, 1) + timedelta(days=7 * row)).isoformat() for row in range(ROWS)]


def write(folder: Path, levels: Sequence[float], days: Sequence[str] | None = DAYS) -> Path:
    """Write a run whose rows have dates of their references; the first ones are the oldest."""
    extras = None if days is None else [{"reference_date": day} for day in days]
    return compared.write_run(folder, levels, rows=ROWS, extras=extras)


def falls(oldest: int) -> list[float]:
    """Return levels that are lower for the rows with the oldest references."""
    return [0.2 if row < oldest else 0.8 for row in range(ROWS)]


def test_a_system_that_is_worse_where_references_are_old_is_named(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", [0.8] * ROWS), write(tmp_path / "b", falls(20))
    comparison = compare_runs(a, b, CompareOptions())
    found = comparison.find(ComparedAges)
    assert found is not None
    assert found.effects.keys() == {"noise_sensitivity"}, "faithfulness reads no reference"
    (sentence,) = sentences(comparison)
    assert sentence == (
        "rows with references from before 2023-04-16 became worse: noise_sensitivity by 0.600 (15 rows), others by "
        "0.067; a reference that is no longer true calls a right answer wrong: check the old ones"
    )
    assert "check the old ones" in comparison_markdown(comparison)
    assert comparison_to_dict(comparison)["reference_age"]["noise_sensitivity"]["rows"] == 15


@pytest.mark.parametrize("days", [None, ["spring"] * ROWS, [*DAYS[:50], *["?"] * 10]])
def test_rows_without_dates_name_nothing(tmp_path: Path, days: Sequence[str] | None) -> None:
    a, b = write(tmp_path / "a", [0.8] * ROWS), write(tmp_path / "b", falls(20), days)
    assert compare_runs(a, b, CompareOptions()).find(ComparedAges) is None


def test_a_fall_everywhere_is_not_one_of_old_references(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", [0.8] * ROWS), write(tmp_path / "b", [0.4] * ROWS)
    assert compare_runs(a, b, CompareOptions()).find(ComparedAges) is None


def test_the_configuration_names_the_column(tmp_path: Path) -> None:
    b = compared.write_run(
        tmp_path / "b",
        falls(20),
        rows=ROWS,
        extras=[{"checked": day} for day in DAYS],
        config={"reference_date": "checked"},
    )
    comparison = compare_runs(write(tmp_path / "a", [0.8] * ROWS), b, CompareOptions())
    assert comparison.find(ComparedAges) is not None


def run_with(scores: Mapping[str, Sequence[float]], days: Sequence[str] = DAYS) -> WrittenRows:
    """Return a written run with scores and dates of references."""
    samples = pa.table(
        {"row_id": [f"r{row}" for row in range(ROWS)], "extras": [json.dumps({"reference_date": day}) for day in days]}
    )
    run = SimpleNamespace(
        requests=[parse_request(metric) for metric in scores],
        tables=SimpleNamespace(shards=lambda *_: iter([samples])),
        record=SimpleNamespace(config=SimpleNamespace(options={})),
        folder=SimpleNamespace(
            read_scores=lambda metric: ((f"r{row}", Score.scored(v)) for row, v in enumerate(scores[metric]))
        ),
        groups=None,
        weights=None,
    )
    return cast("WrittenRows", run)


def test_a_run_names_metrics_of_references_with_worse_scores_where_they_are_old() -> None:
    levels = falls(20)
    harms = [1 - level for level in levels]
    (found,) = count(run_with({"answer_correctness": levels, "noise_sensitivity": harms, "faithfulness": levels}))
    assert found.root.keys() == {"answer_correctness", "noise_sensitivity"}
    effect = found.root["noise_sensitivity"]
    assert effect.rows == 15
    assert effect.old == pytest.approx(0.8)
    summary = SimpleNamespace(find_all=lambda _: found.root)
    (sentence,) = how_to_read(cast("RunRecords", SimpleNamespace(summary=summary)))
    assert sentence.startswith(
        "Rows with references from before 2023-04-16 score worse: answer_correctness 0.20 (15 rows), others 0.73, "
    )
    assert [*count(run_with({"answer_correctness": [0.5] * ROWS}))] == []
