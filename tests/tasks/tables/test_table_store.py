"""Stage tables are complete, named by content, and refused if they do not match their reference."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from metric_core.errors import AssayError
from metric_core.schemas import QUESTIONS, SAMPLES
from metric_core.stages import Stage
from tasks.runs.row_groups import read_shards
from tasks.runtime.usage import StageUsage
from tasks.tables.records import build_table
from tasks.tables.row_digests import row_digests
from tasks.tables.table_store import StageRef, TableStore, concatenate, content_digest, read, read_unchanged
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


@pytest.mark.parametrize("damage", [b"", b"PAR1 not a table"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path, damage: bytes) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    Path(ref.path).write_bytes(damage)
    with pytest.raises(AssayError, match=r"cannot be read.*Delete it"):
        read(ref)


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    Path(ref.path).write_bytes(Path(ref.path).read_bytes()[:-20])
    with pytest.raises(AssayError, match="cannot be read"):
        read(ref)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    Path(ref.path).unlink()
    with pytest.raises(AssayError, match="does not exist"):
        read(ref)


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    with pytest.raises(AssayError, match="schema version 99"):
        read(ref.model_copy(update={"schema_version": 99}))


def test_another_number_of_rows_is_refused(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(questions("Why?"), QUESTIONS)
    with pytest.raises(AssayError, match="expected 7"):
        read(ref.model_copy(update={"rows": 7}))


def test_shards_are_concatenated_in_order(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path / "store"))
    refs = [store.write(samples_table({"user_input": text}), SAMPLES) for text in ("one", "two")]
    target = tmp_path / "samples.parquet"
    assert concatenate(refs, str(target)) == 2
    assert pq.read_table(target)["user_input"].to_pylist() == ["one", "two"]
    assert pq.read_schema(target).metadata[b"assay.stage"] == b"samples"


SCORED = {"row_id": "b", "retrieved_contexts": ["one"], "retrieved_context_scores": [0.5]}


def test_rows_without_an_optional_column_keep_their_digests(tmp_path: Path) -> None:
    sample = {"row_id": "a", "user_input": "Why?", "retrieved_contexts": ["one", "two"]}
    plain = samples_table({**sample, "rubrics": [{"key": "score1", "description": "wet"}]})
    ref = TableStore(str(tmp_path)).write(plain, SAMPLES)
    # As computed before there were optional columns.
    assert (ref.schema_version, ref.digest) == (1, "23cd54973a8b723faac3c13f11836d9e")
    assert pq.read_schema(ref.path).names == SAMPLES.arrow_without(SAMPLES.optional).names
    for table in (read(ref), plain, pa.concat_tables([plain, samples_table(SCORED)])):
        assert row_digests(table)[0].hex() == "19bb854e6b76b380f22e64ef2cbfd630"
    assert read(ref).schema == SAMPLES.arrow
    assert read_unchanged(ref).schema == SAMPLES.arrow
    assert read(ref, ["retrieved_context_scores", "row_id"]).to_pydict() == {
        "retrieved_context_scores": [None],
        "row_id": ["a"],
    }


def test_a_file_of_shards_has_the_optional_columns_that_a_shard_has(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path / "store"))
    plain, scored = (store.write(samples_table(row), SAMPLES) for row in ({"row_id": "a"}, SCORED))
    assert (plain.schema_version, scored.schema_version) == (1, 2)
    target = tmp_path / "samples.parquet"
    concatenate([plain], str(target))
    assert pq.read_schema(target) == pq.read_schema(plain.path)
    concatenate([plain, scored], str(target))
    assert pq.read_schema(target).metadata[b"assay.version"] == b"2"
    shards = list(read_shards(target, ["row_id", "retrieved_context_scores"]))
    assert [shard.to_pylist() for shard in shards] == [
        [{"row_id": "a", "retrieved_context_scores": None}],
        [{"row_id": "b", "retrieved_context_scores": [0.5]}],
    ]


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
