"""Finished runs as Python objects."""

import json
import re
from pathlib import Path

import pytest

from flows.results.run_result import open_run
from metric_core.errors import ConfigError, RunFolderError
from tests.tasks.reports import folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_hostile_run(tmp_path_factory.mktemp("runs") / "run")


def test_run_has_its_numbers(folder: Path) -> None:
    run = open_run(folder)
    faithfulness = run.summary["faithfulness"]
    assert (faithfulness["distribution"]["mean"], faithfulness["scored"], faithfulness["failed"]) == (0.5, 3, 1)
    assert run.judge == folders.NOTE
    assert repr(run) == f"Run('{folder}', 4 rows, 6 metrics)"


def test_run_has_its_tables(folder: Path) -> None:
    run = open_run(str(folder))
    assert len(run.scores()) == 4 * len(folders.METRICS)
    assert run.scores("wide").columns == ["row_id", *folders.METRICS]
    with pytest.raises(ConfigError, match="Did you mean wide"):
        run.scores("wid")
    assert [row["row_id"] for row in run.samples()] == [sample["row_id"] for sample in folders.SAMPLES]
    assert {row["metric"] for row in run.failed_cells()} == {"faithfulness", "house_style"}
    assert len(run.table("claims")) == len(folders.CLAIMS)


def test_missing_table_is_reported_with_the_existing_ones(folder: Path) -> None:
    with pytest.raises(RunFolderError, match=r"has no stages/claim\.parquet\. It has .*stages/claims\.parquet"):
        open_run(folder).table("claim")


def test_a_run_is_exported_and_reported(folder: Path, tmp_path: Path) -> None:
    run = open_run(folder)
    lines = run.export(tmp_path / "scores.jsonl", shape="ragas").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["response"] == "It opened in 1653. It is white."
    assert run.export(tmp_path / "scores", "csv").read_bytes().startswith(b'"row_id","metric"')
    assert run.report(tmp_path / "page.html", rows=1).stat().st_size > 10_000


def test_a_run_shows_its_summary_in_a_notebook(folder: Path) -> None:
    shown = open_run(folder)._repr_html_()
    assert "faithfulness 0.500" in " ".join(re.sub("<[^>]*>", " ", shown).split())
    assert "noise_sensitivity \u2193" in shown
    assert "&lt;AUROC&gt;" in shown


@pytest.mark.parametrize("status", ["running", "failed"])
def test_an_unfinished_run_is_refused(tmp_path: Path, status: str) -> None:
    folders.write_json(tmp_path / "run.json", {"format": 1, "status": status})
    with pytest.raises(RunFolderError, match=f"is not finished .its status is '{status}'"):
        open_run(tmp_path)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        open_run(tmp_path)
