"""Only records of the expected serializer with intact tables are returned; a planted record is never executed."""

import json
from pathlib import Path

import pytest
from prefect.results import ResultStore
from prefect.serializers import PickleSerializer

from metric_core.schemas import QUESTIONS
from metric_core.stages import Stage
from tasks.prefect_support.stage_results import StageRefSerializer, StageResults, UnusableRecordError
from tasks.runtime.usage import StageUsage
from tasks.tables.records import build_table
from tasks.tables.table_store import StageRef, TableStore

KEY = "0123abcd"


def write_record(root: Path, usage: StageUsage | None = None) -> StageRef:
    """Write a table and its record under KEY, as Prefect does, and return the reference."""
    row = {"row_id": "a", "k": 0, "text": "Why?", "noncommittal": False, "status": "answered"}
    ref = TableStore(str(root)).write(build_table(Stage.QUESTIONS, [row]), QUESTIONS, usage)
    store = ResultStore(result_storage=StageResults(root=str(root)), serializer=StageRefSerializer())
    store.write(ref, KEY)
    return ref


def exists(root: Path) -> bool:
    """Return whether Prefect finds a record that it can use."""
    store = ResultStore(result_storage=StageResults(root=str(root)), serializer=StageRefSerializer())
    return store.exists(KEY)


def test_a_written_record_is_found(tmp_path: Path) -> None:
    ref = write_record(tmp_path)
    assert exists(tmp_path)
    assert StageResults(root=str(tmp_path)).find(KEY) == ref


def test_a_missing_record_is_not_found(tmp_path: Path) -> None:
    assert StageResults(root=str(tmp_path)).find(KEY) is None
    with pytest.raises(UnusableRecordError, match="no record"):
        StageResults(root=str(tmp_path)).read_path(KEY)


def test_a_table_with_failed_answers_gets_no_record(tmp_path: Path) -> None:
    write_record(tmp_path, StageUsage(questions=2, failed={"no usable reply": 1}))
    assert not exists(tmp_path)


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_a_record_whose_table_is_damaged_is_not_used(tmp_path: Path, damage: str) -> None:
    table = Path(write_record(tmp_path).path)
    content = bytearray(table.read_bytes())
    if damage == "gone":
        table.unlink()
    elif damage == "cut":
        table.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 3] ^= 0xFF
        table.write_bytes(content)
    assert not exists(tmp_path)


def test_a_damaged_table_is_written_again(tmp_path: Path) -> None:
    table = Path(write_record(tmp_path).path)
    content = table.read_bytes()
    table.write_bytes(content[:-20] + bytes(20))
    write_record(tmp_path)
    assert table.read_bytes() == content
    assert exists(tmp_path)


@pytest.mark.parametrize("serializer", [{"type": "pickle", "picklelib": "cloudpickle"}, {"type": "json"}])
def test_a_planted_record_is_never_executed(tmp_path: Path, serializer: dict[str, str]) -> None:
    write_record(tmp_path)
    trace = tmp_path / "executed"

    class Planted:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return Path.touch, (trace,)

    place = tmp_path / "results" / f"{KEY}.json"
    record = json.loads(place.read_text())
    record["metadata"]["serializer"] = serializer
    record["result"] = PickleSerializer().dumps(Planted()).decode()
    place.write_text(json.dumps(record))
    assert not exists(tmp_path)
    assert StageResults(root=str(tmp_path)).find(KEY) is None
    assert not trace.exists()


def test_a_torn_record_is_not_used(tmp_path: Path) -> None:
    write_record(tmp_path)
    place = tmp_path / "results" / f"{KEY}.json"
    place.write_bytes(place.read_bytes()[:40])
    assert not exists(tmp_path)
