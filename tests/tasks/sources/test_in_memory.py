"""A data set in memory becomes a file once, and reads like the data set itself."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from metric_core.errors import AssayError
from tasks.sources import SourceOptions, read_samples
from tasks.sources.in_memory import save_dataset

ROWS = {"question": ["Why?", "Who?"], "answer": ["Because.", "Me."], "contexts": [["a", "b"], []]}


def test_a_saved_data_set_reads_like_the_object(tmp_path: Path) -> None:
    dataset = Dataset.from_dict(ROWS)
    path = save_dataset(dataset, str(tmp_path))
    of_file = [table.to_pylist() for table in read_samples(path, SourceOptions(), {})]
    of_object = [table.to_pylist() for table in read_samples(dataset, SourceOptions(), {})]
    assert of_file == of_object
    assert of_file[0][1]["retrieved_contexts"] == []


def test_an_equal_data_set_is_saved_once(tmp_path: Path) -> None:
    dataset = Dataset.from_dict(ROWS)
    assert save_dataset(dataset, str(tmp_path)) == save_dataset(dataset, str(tmp_path))
    assert save_dataset(dataset.select([0]), str(tmp_path)) != save_dataset(dataset, str(tmp_path))
    assert len(list((tmp_path / "sources").iterdir())) == 2


def test_a_data_set_that_does_not_fit_on_the_disk_is_a_message_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Dataset, file: Any) -> None:
        file.write(b"a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Dataset, "to_parquet", full)
    with pytest.raises(AssayError, match=r"cannot be written: .*No space left"):
        save_dataset(Dataset.from_dict(ROWS), str(tmp_path))
    assert list((tmp_path / "sources").iterdir()) == []
