"""Tables of samples are complete, named by content, and refused if they do not match their reference."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from metric_core.errors import AssayError
from metric_core.schemas import SAMPLES
from tasks.rows.table_store import TableStore, content_digest
from tests.tasks.builders import samples_table


def questions(*texts: str) -> pa.Table:
    return samples_table(*({"row_id": f"r{number}", "user_input": text} for number, text in enumerate(texts)))


def test_a_written_table_can_be_read(tmp_path: Path) -> None:
    table = questions("Why?", "When?")
    samples = TableStore(str(tmp_path)).write(table)
    assert samples.read().to_pylist() == table.to_pylist()
    assert samples.rows == 2


def test_equal_tables_have_one_file_with_any_chunks(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path))
    whole = questions("Why?", "When?")
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 1)])
    assert store.write(whole).digest == store.write(chunked).digest
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_other_values_have_another_digest() -> None:
    assert content_digest(questions("Why?")) != content_digest(questions("When?"))


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    TableStore(str(tmp_path)).write(questions("Why?"))
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".parquet"]


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lacks the columns"):
        TableStore(str(tmp_path)).write(questions("Why?").drop_columns(["row_id"]))


def test_null_in_a_required_column_is_refused(tmp_path: Path) -> None:
    table = pa.table(
        {name: pa.array([None], column.type) for name, column in zip(SAMPLES.arrow.names, SAMPLES.arrow, strict=True)}
    )
    with pytest.raises(ValueError, match=r"nulls|null"):
        TableStore(str(tmp_path)).write(table)


def test_a_file_that_is_not_what_was_written_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    samples = TableStore(str(tmp_path)).write(questions("Why?"))
    path = Path(samples.path)
    content = path.read_bytes()
    for damage in (b"", b"PAR1 not a table", content[:-20]):
        path.write_bytes(damage)
        with pytest.raises(AssayError, match=r"cannot be read.*Delete it"):
            samples.read()
    path.write_bytes(content)
    for other, problem in (
        (replace(samples, schema_version=99), "version 99"),
        (replace(samples, rows=7), "expected 7"),
    ):
        with pytest.raises(AssayError, match=problem):
            other.read()
    path.unlink()
    with pytest.raises(AssayError, match="does not exist"):
        samples.read()


def test_a_table_is_stored_without_optional_columns_that_have_no_value(tmp_path: Path) -> None:
    sample = {"row_id": "a", "user_input": "Why?", "retrieved_contexts": ["one", "two"]}
    plain = samples_table({**sample, "rubrics": [{"key": "score1", "description": "wet"}]})
    samples = TableStore(str(tmp_path)).write(plain)
    assert pq.read_schema(samples.path).names == SAMPLES.arrow_without(SAMPLES.optional).names
    assert samples.read().schema == SAMPLES.arrow
    assert samples.read(["retrieved_context_scores", "row_id"]).to_pydict() == {
        "retrieved_context_scores": [None],
        "row_id": ["a"],
    }


def test_tables_work_at_any_fsspec_url() -> None:
    samples = TableStore("memory://tables").write(questions("Why?"))
    assert samples.path.startswith("memory://")
    assert samples.read().num_rows == 1


def test_datasets_opens_a_table_with_every_column_filled(tmp_path: Path) -> None:
    sample = {
        "user_input": "Why?",
        "retrieved_contexts": ["a", "b"],
        "rubrics": [{"key": "score1_description", "description": "bad"}],
    }
    samples = TableStore(str(tmp_path)).write(samples_table(sample))
    loaded = load_dataset("parquet", data_files=samples.path, split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded[0]["retrieved_contexts"] == ["a", "b"]
    assert loaded[0]["rubrics"] == [{"key": "score1_description", "description": "bad"}]
