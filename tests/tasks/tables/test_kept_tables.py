"""Only records with intact tables are returned, with every question counted as cached."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from metric_core.schemas import QUESTIONS
from metric_core.stages import Stage
from tasks.runtime.usage import StageUsage
from tasks.tables.kept_tables import KeptTables
from tasks.tables.records import build_table
from tasks.tables.table_store import StageRef, TableStore

KEY = "0123abcd"
USAGE = StageUsage(questions=2, requests=3, prompt_tokens=900, seconds=1.5, long_texts=1, languages={"en": 1})


def write_record(root: Path, usage: StageUsage = USAGE) -> StageRef:
    """Write a table and its record under KEY, as a stage does, and return the reference."""
    row = {"row_id": "a", "k": 0, "text": "Why?", "noncommittal": False, "status": "answered"}
    ref = TableStore(str(root)).write(build_table(Stage.QUESTIONS, [row]), QUESTIONS, usage)
    KeptTables(str(root)).keep(KEY, ref)
    return ref


def find(root: Path) -> StageRef | None:
    """Return the table under KEY."""
    return KeptTables(str(root)).find(KEY)


def test_kept_table_is_found_and_its_questions_count_as_cached(tmp_path: Path) -> None:
    ref = write_record(tmp_path)
    usage = StageUsage(questions=2, stored=2, long_texts=1, languages={"en": 1})
    assert find(tmp_path) == ref.model_copy(update={"usage": usage})
    assert KeptTables(str(tmp_path)).find("another") is None


def test_table_with_failed_answers_is_not_kept(tmp_path: Path) -> None:
    write_record(tmp_path, StageUsage(questions=2, failed={"no usable reply": 1}))
    assert find(tmp_path) is None


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_record_whose_table_is_damaged_is_not_used(tmp_path: Path, damage: str) -> None:
    table = Path(write_record(tmp_path).path)
    content = bytearray(table.read_bytes())
    if damage == "gone":
        table.unlink()
    elif damage == "cut":
        table.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 3] ^= 0xFF
        table.write_bytes(content)
    assert find(tmp_path) is None


def test_damaged_table_is_written_again(tmp_path: Path) -> None:
    table = Path(write_record(tmp_path).path)
    content = table.read_bytes()
    table.write_bytes(content[:-20] + bytes(20))
    write_record(tmp_path)
    assert table.read_bytes() == content
    assert find(tmp_path) is not None


def test_an_unchanged_table_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(tmp_path)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", None)
    assert find(tmp_path) is not None


def test_a_record_of_an_earlier_version_gets_the_digest_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = write_record(tmp_path)
    record = tmp_path / "results" / f"{KEY}.json"
    earlier = ref.model_dump(mode="json", exclude={"file_digest"})
    record.write_text(json.dumps({"result": json.dumps(earlier)}), encoding="utf-8")
    assert find(tmp_path) is not None
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", None)
    assert find(tmp_path) is not None
    kept = StageRef.model_validate_json(json.loads(record.read_text(encoding="utf-8"))["result"])
    assert kept == ref


def test_a_table_with_other_bytes_and_the_same_content_is_used(tmp_path: Path) -> None:
    path = write_record(tmp_path).path
    pq.write_table(pq.read_table(path), path, compression="none")
    assert find(tmp_path) is not None


def test_a_table_with_other_content_is_not_used(tmp_path: Path) -> None:
    path = write_record(tmp_path).path
    table = pq.read_table(path)
    other = table.set_column(table.schema.get_field_index("text"), table.schema.field("text"), [["When?"]])
    pq.write_table(other, path)
    assert find(tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"result": "{}"}), json.dumps({"result": 7})])
def test_unreadable_record_is_not_used(tmp_path: Path, content: str) -> None:
    write_record(tmp_path)
    (tmp_path / "results" / f"{KEY}.json").write_text(content, encoding="utf-8")
    assert find(tmp_path) is None
