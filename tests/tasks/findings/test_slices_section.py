"""Slices in the report of a run, as lines for terminals, and as a table."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.results.run_result import RunResult
from metric_core.records import Direction
from metric_core.statistics.slice_summary import ColumnSummary, SliceSummary
from tasks.documents.run.score_table import MetricScale
from tasks.findings.slices.slice_summaries import SliceRecords
from tasks.findings.slices.slices_section import RowSliceNumbers, slice_sections
from tasks.findings.slices.slices_view import describe_column, read_lines, worst_lines_first
from tasks.record.run_summary import RunSummary
from tasks.reports.run.report_page import write_report
from tasks.runs.run_folder import RunFolder
from tests.tasks import sliced
from tests.tasks.reports import folders


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose rows about travel are poor."""
    return sliced.write_run(tmp_path_factory.mktemp("sliced") / "run")


def summary_of(run: Path) -> RunSummary:
    return RunFolder(run).read_summary()


def _scales(metrics: Mapping[str, Mapping[str, Any]]) -> list[MetricScale]:
    return [
        MetricScale(key, Direction(entry["direction"]), tuple(entry["bounds"]) if entry.get("bounds") else None)
        for key, entry in metrics.items()
    ]


def metric_scales() -> list[MetricScale]:
    return _scales(sliced.METRICS)


def columns_of(summary: RunSummary) -> tuple[ColumnSummary, ...]:
    """Return the summaries by slice, one for each column."""
    found = summary.find(SliceRecords)
    assert found is not None
    return found.root


def sections_of(summary: RunSummary, scales: Sequence[MetricScale]) -> list[dict[str, Any]]:
    """Return the columns for the page."""
    return slice_sections(columns_of(summary), summary.by_metric, scales)


def test_the_worst_slices_come_first_and_small_ones_last(run: Path) -> None:
    [topics, customers] = sections_of(summary_of(run), metric_scales())
    values = [row["value"] for row in topics["rows"]]
    assert values[0] == "travel"
    assert set(values[-3:]) == {"on-call", "returns", "(no value)"}
    assert [row["is_small"] for row in topics["rows"]] == [False] * 4 + [True] * 3
    assert (topics["worse"], topics["column"], customers["column"]) == (1, "topic", "customer")
    assert all(cell["is_worse"] for cell in topics["rows"][0]["cells"])
    assert not any(cell["is_worse"] for row in topics["rows"][1:] for cell in row["cells"])
    assert [metric["key"] for metric in topics["metrics"]] == [key for key in sliced.METRICS if key != "nv_accuracy"]


def test_each_metric_has_its_own_order(run: Path) -> None:
    [topics, _] = sections_of(summary_of(run), metric_scales())
    for number in range(5):
        places = sorted(int(row["ranks"].split()[number]) for row in topics["rows"])
        assert places == list(range(7))
    noise = 1 + 3
    means = [
        row["cells"][3]["mean"] for row in sorted(topics["rows"], key=lambda row: int(row["ranks"].split()[noise]))
    ]
    assert means[0] == max(means)
    assert means[1:4] == sorted(means[1:4], reverse=True)


def test_few_rows_have_no_interval_and_failed_cells_are_counted(run: Path) -> None:
    [topics, _] = sections_of(summary_of(run), metric_scales())
    by_value = {row["value"]: row for row in topics["rows"]}
    assert {cell["interval"] for cell in by_value["returns"]["cells"]} == {None}
    assert by_value["returns"]["cells"][2]["counts"] == (2, 0, 1)
    assert all(cell["interval"] for cell in by_value["on-call"]["cells"])


def test_a_row_is_found_in_its_slice(run: Path) -> None:
    summary = summary_of(run)
    samples = pq.read_table(run / "stages" / "samples.parquet").to_pylist()
    numbers = RowSliceNumbers(columns_of(summary))
    names = [[one.value for one in column.slices] for column in columns_of(summary)]
    found = [[names[column][number] for column, number in enumerate(numbers.find(sample))] for sample in samples]
    assert found[0] == ["travel", "Adler"]
    assert found[-1][0] == "(no value)"
    assert {value for value, _ in found} == set(names[0])


def test_the_report_has_the_slices_and_no_markup_of_the_data(run: Path) -> None:
    text = write_report(run).read_text(encoding="utf-8")
    assert "7 slices by topic, 3 with fewer than 30 rows, 20 rows without a value as (no value)" in text
    assert "<b>Caro" not in text
    assert "&lt;b&gt;Caro&lt;/b&gt;" in text
    assert len(re.findall(r"<tr data-ranks=", text)) == 11
    rows = json.loads(re.findall(r'id="report-data">(.*?)</script>', text, re.DOTALL)[0])["rows"]
    assert all(len(row["slices"]) == 2 and min(row["slices"]) >= 0 for row in rows)


def test_a_report_without_slices_says_nothing_of_them(tmp_path: Path) -> None:
    text = write_report(folders.write_hostile_run(tmp_path / "run")).read_text(encoding="utf-8")
    assert 'class="slices"' not in text
    assert 'id="slice"' not in text


def test_a_metric_of_several_scales_has_a_mean_per_scale(tmp_path: Path) -> None:
    folder = folders.write_hostile_run(tmp_path / "run")
    sliced.add_slices(folder, ["topic"])
    sticks = _scales(folders.METRICS)
    [topics] = sections_of(summary_of(folder), sticks)
    cells = {
        row["value"]: dict(zip([m["key"] for m in topics["metrics"]], row["cells"], strict=True))
        for row in topics["rows"]
    }
    assert cells["history"]["instance_rubrics"]["scales"] == [("1-5", "4.000")]
    assert cells["(no value)"]["house_style"]["mean"] is None
    assert write_report(folder).read_text(encoding="utf-8").count("categories") >= 1


def test_lines_of_a_metric_are_ordered_by_evidence_then_by_mean(run: Path) -> None:
    lines = [line for line in read_lines(columns_of(summary_of(run))[0]) if line.metric == "noise_sensitivity"]
    ordered = worst_lines_first(lines)
    assert (ordered[0].slice.value, ordered[0].is_worse) == ("travel", True)
    assert [line.is_small for line in ordered] == [False] * 4 + [True] * 3


def test_slices_are_a_table_for_notebooks(run: Path) -> None:
    table = RunResult(run).slices().to_pylist()
    assert len(table) == 11 * len(sliced.METRICS)
    [travel] = [row for row in table if (row["value"], row["metric"]) == ("travel", "faithfulness")]
    assert (travel["column"], travel["rows"], travel["scored"], travel["is_worse"]) == ("topic", 60, 60, True)
    assert travel["low"] < travel["mean"] < travel["high"]


def test_merged_values_are_counted() -> None:
    column = ColumnSummary("c", 9, 7, (SliceSummary("x", 40, False, ()),) * 3)
    assert describe_column(column) == "3 slices by c, the 7 rarest values together as (other values)"
