"""Data sets of the `datasets` library: objects, saved folders and names on the hub."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import SourceError
from tasks.sources import SourceOptions, available_columns, read_samples
from tests.tasks.sources.helpers import NEEDED, SAMPLES, column, read, write_lines

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def dataset() -> Any:
    return datasets.Dataset.from_list(SAMPLES)


def _message(source: object) -> str:
    with pytest.raises(SourceError) as caught:
        read_samples(source, SourceOptions(), NEEDED)
    return str(caught.value)


def test_an_object_gives_the_same_table(dataset: Any, tmp_path: Path) -> None:
    _, wanted = read(write_lines(tmp_path / "log.jsonl", SAMPLES))
    assert read(dataset)[1].equals(wanted)
    assert read(dataset.with_format("numpy"))[1].equals(wanted)
    assert available_columns(dataset, SourceOptions())[0] == "user_input"


def test_a_selection_is_respected_and_renumbered(dataset: Any) -> None:
    _, table = read(dataset.select([1]))
    assert column(table, "row_id") == ["b"]
    assert column(table, "row_number") == [1]


def test_a_saved_folder_gives_the_same_table(dataset: Any, tmp_path: Path) -> None:
    dataset.save_to_disk(str(tmp_path / "saved"))
    assert read(tmp_path / "saved")[1].equals(read(dataset)[1])
    assert "has no splits, got the split 'train'" in _message(f"{tmp_path / 'saved'}#train")


def test_splits_of_a_saved_folder(dataset: Any, tmp_path: Path) -> None:
    splits = datasets.DatasetDict(train=dataset, test=dataset.select([1]))
    splits.save_to_disk(str(tmp_path / "saved"))
    assert read(f"{tmp_path / 'saved'}#test")[1].num_rows == 1
    assert "has the splits 'train', 'test'; name one: #train" in _message(tmp_path / "saved")
    assert "has no split 'tests'; it has 'train', 'test'. Did you mean 'test'?" in _message(
        f"{tmp_path / 'saved'}#tests"
    )
    assert "the data set has the splits 'train', 'test'" in _message(splits)


def test_the_only_split_needs_no_name(dataset: Any, tmp_path: Path) -> None:
    datasets.DatasetDict(eval=dataset).save_to_disk(str(tmp_path / "saved"))
    assert read(tmp_path / "saved")[1].num_rows == 2


def test_a_damaged_folder(dataset: Any, tmp_path: Path) -> None:
    dataset.save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "saved" / "state.json").write_text("{}")
    assert "cannot be read" in _message(tmp_path / "saved")


def test_a_file_as_the_library_writes_it(tmp_path: Path) -> None:
    # In JSON and CSV the library writes mappings with every key of the data set, so the judgments are JSON texts.
    rows = [row | {"relevance_judgments": json.dumps(row["relevance_judgments"])} for row in SAMPLES]
    texts = datasets.Dataset.from_list(rows).remove_columns("rubrics")
    _, wanted = read(texts)
    texts.to_json(str(tmp_path / "log.json"))
    texts.to_csv(str(tmp_path / "log.csv"))
    texts.to_parquet(str(tmp_path / "log.parquet"))
    for name in ("log.json", "log.csv", "log.parquet"):
        assert read(tmp_path / name)[1].equals(wanted), name


@pytest.mark.parametrize(
    ("address", "asked"),
    [("hub:owner/name#test", ("owner/name", None)), ("hub:owner/name:english#test", ("owner/name", "english"))],
)
def test_names_on_the_hub(
    address: str, asked: tuple[str, str | None], dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str | None]] = []

    def load_dataset(path: str, name: str | None) -> Any:
        calls.append((path, name))
        return datasets.DatasetDict(train=dataset, test=dataset.select([0]))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert read(address)[1].num_rows == 1
    assert calls == [asked]
    assert "has the splits 'train', 'test'" in _message("hub:owner/name")


def test_a_data_set_on_the_hub_has_a_name() -> None:
    for address in ("hub:", "hub:#train", "hub: /"):
        assert _message(address) == f"{address} names no data set; write hub:owner/name"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Config name is missing"),
        datasets.exceptions.DatasetNotFoundError("not there"),
        OSError("no network"),
    ],
)
def test_a_hub_that_does_not_answer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*_: object) -> Any:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert str(error) in _message("hub:owner/name")
