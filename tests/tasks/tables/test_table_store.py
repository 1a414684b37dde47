"""Stage tables are complete, named by content, and refused if they do not match their reference."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from metric_core.errors import AssayError
from metric_core.schemas import QUESTIONS, SAMPLES
from metric_core.stages import Stage
from tasks.runtime.usage import StageUsage
from tasks.tables.records import build_table
from tasks.tables.table_store import StageRef, TableStore, content_digest, read
from tests.tasks.builders import samples_table


def questions(*texts: str) -> pa.Table:
    return build_table(
        Stage.QUESTIONS,
        [
            {"row_id": "a", "k": k, "text": text, "noncommittal": False, "status": "answered"}
            for k, text in enumerate(texts)
        ],
    )


def test_a_written_table_can_be_read(tmp_path: Path) -> None:
    table = questions("Why?", "When?")
    ref = TableStore(str(tmp_path)).write(table, QUESTIONS, StageUsage(questions=1))
    assert read(ref).to_pylist() == table.to_pylist()
    assert (ref.stage, ref.rows, ref.usage.questions) == (Stage.QUESTIONS, 2, 1)


def test_equal_tables_have_one_file_with_any_chunks(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path))
    whole = questions("Why?", "When?")
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 1)])
    assert store.write(whole, QUESTIONS).digest == store.write(chunked, QUESTIONS).digest
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_other_values_have_another_digest() -> None:
    assert content_digest(questions("Why?")) != content_digest(questions("When?"))


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".parquet"]


def test_a_reference_survives_json(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    assert StageRef.model_validate_json(ref.model_dump_json()) == ref


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lacks the columns"):
        TableStore(str(tmp_path)).write(questions("Why?").drop_columns(["status"]), QUESTIONS)


def test_null_in_a_required_column_is_refused(tmp_path: Path) -> None:
    table = pa.table(
        {
            name: pa.array([None], column.type)
            for name, column in zip(QUESTIONS.arrow.names, QUESTIONS.arrow, strict=True)
        }
    )
    with pytest.raises(ValueError, match=r"nulls|null"):
        TableStore(str(tmp_path)).write(table, QUESTIONS)


def test_a_file_that_is_not_what_was_written_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    path = Path(ref.path)
    content = path.read_bytes()
    for damage in (b"", b"PAR1 not a table", content[:-20]):
        path.write_bytes(damage)
        with pytest.raises(AssayError, match=r"cannot be read.*Delete it"):
            read(ref)
    path.write_bytes(content)
    for other, problem in (({"schema_version": 99}, "schema version 99"), ({"rows": 7}, "expected 7")):
        with pytest.raises(AssayError, match=problem):
            read(ref.model_copy(update=other))
    path.unlink()
    with pytest.raises(AssayError, match="does not exist"):
        read(ref)


def test_a_table_is_stored_without_optional_columns_that_have_no_value(tmp_path: Path) -> None:
    sample = {"row_id": "a", "user_input": "Why?", "retrieved_contexts": ["one", "two"]}
    plain = samples_table({**sample, "rubrics": [{"key": "score1", "description": "wet"}]})
    ref = TableStore(str(tmp_path)).write(plain, SAMPLES)
    assert pq.read_schema(ref.path).names == SAMPLES.arrow_without(SAMPLES.optional).names
    assert read(ref).schema == SAMPLES.arrow
    assert read(ref, ["retrieved_context_scores", "row_id"]).to_pydict() == {
        "retrieved_context_scores": [None],
        "row_id": ["a"],
    }


def test_tables_work_at_any_fsspec_url() -> None:
    ref = TableStore("memory://tables").write(questions("Why?"), QUESTIONS)
    assert ref.path.startswith("memory://")
    assert read(ref).num_rows == 1


def test_datasets_opens_a_table_with_every_column_filled(tmp_path: Path) -> None:
    sample = {
        "user_input": "Why?",
        "retrieved_contexts": ["a", "b"],
        "rubrics": [{"key": "score1_description", "description": "bad"}],
    }
    ref = TableStore(str(tmp_path)).write(samples_table(sample), SAMPLES)
    loaded = load_dataset("parquet", data_files=ref.path, split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded[0]["retrieved_contexts"] == ["a", "b"]
    assert loaded[0]["rubrics"] == [{"key": "score1_description", "description": "bad"}]
