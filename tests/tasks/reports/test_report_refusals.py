"""Folders that no report can be made from, and the messages about them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from metric_core.errors import ConfigError, RunFolderError
from metric_core.stages import Stage
from tasks.reports.run.report_page import write_report
from tests.tasks.reports import folders


def test_a_negative_number_of_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 0, got -1"):
        write_report(tmp_path, worst_rows=-1)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        write_report(tmp_path)


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    folders.write_json(tmp_path / "run.json", {"format": 1, "status": "failed"})
    with pytest.raises(RunFolderError, match=r"is not finished \(its status is 'failed'\)"):
        write_report(tmp_path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    folders.write_json(tmp_path / "run.json", {"format": 2})
    with pytest.raises(RunFolderError, match="format 2"):
        write_report(tmp_path)


def test_a_summary_that_lacks_a_metric_is_refused(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    folders.write_json(folder / "summary.json", {"rows": 2, "metrics": []})
    with pytest.raises(RunFolderError, match="lacks the metrics faithfulness"):
        write_report(folder)


def test_a_table_of_another_schema_version_is_refused(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    path = folder / "stages" / "samples.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"assay.version": "99"}), path)
    with pytest.raises(RunFolderError, match="schema version 99"):
        write_report(folder)


def test_scores_of_rows_that_are_not_among_the_samples_are_refused(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    folders.write_table(folder / "stages" / "samples.parquet", Stage.SAMPLES, [])
    with pytest.raises(RunFolderError, match="lacks 2 rows that have scores"):
        write_report(folder)


@pytest.mark.parametrize("name", ["scores.parquet", "stages/samples.parquet"])
def test_a_damaged_table_is_refused(tmp_path: Path, name: str) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    (folder / name).write_bytes(b"not a table")
    with pytest.raises(RunFolderError, match="cannot be read"):
        write_report(folder)
