"""The rows of an earlier run are found without reading its tables once a shard, and what is damaged is named."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from metric_core.errors import RunFolderError
from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.runs import run_folder
from tasks.runs.finished_run import FinishedRun
from tests.tasks.builders import samples_table
from tests.tasks.reports import folders

SHARDS = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of three rows a shard, whose ids say nothing about their order."""
    (tmp_path / run_folder.STAGES).mkdir()
    content = folders.build_manifest(3 * SHARDS, {}, ())
    (tmp_path / run_folder.MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    with pq.ParquetWriter(tmp_path / run_folder.STAGES / "samples.parquet", SAMPLES.arrow) as writer:
        for shard in range(SHARDS):
            ids = [f"{row}-{shard}" for row in range(3)]
            writer.write_table(samples_table(*({"row_id": row_id, "response": row_id} for row_id in ids)))
    return tmp_path


def test_rows_come_from_the_shards_that_have_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    read_row_groups = pq.ParquetFile.read_row_groups

    def noted(file: pq.ParquetFile, numbers: list[int], *rest: Any) -> Any:
        read.extend(numbers)
        return read_row_groups(file, numbers, *rest)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    run = FinishedRun(folder)
    assert run.rows(Stage.SAMPLES, ["2-7", "0-3", "1-7", "none"])["response"].to_pylist() == ["0-3", "1-7", "2-7"]
    assert run.rows(Stage.SAMPLES, ["none"]).num_rows == 0
    for shard in range(SHARDS):
        assert run.rows(Stage.SAMPLES, [f"{row}-{shard}" for row in range(3)]).num_rows == 3
    assert len(read) == 2 + SHARDS


def test_a_damaged_table_is_named(folder: Path) -> None:
    path = folder / run_folder.STAGES / "samples.parquet"
    run = FinishedRun(folder)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])
    with pytest.raises(RunFolderError, match=r"samples\.parquet cannot be read"):
        run.rows(Stage.SAMPLES, ["0-0"])
    path.unlink()
    with pytest.raises(RunFolderError, match=r"it has no stages/samples\.parquet"):
        run.rows(Stage.SAMPLES, ["0-0"])


def test_a_table_that_changes_while_it_is_used_is_named(folder: Path) -> None:
    path = folder / run_folder.STAGES / "samples.parquet"
    run = FinishedRun(folder)
    assert run.rows(Stage.SAMPLES, ["0-0"]).num_rows == 1
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunFolderError, match=r"samples\.parquet cannot be read"):
        run.rows(Stage.SAMPLES, ["0-0"])
