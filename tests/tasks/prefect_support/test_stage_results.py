"""Only records of ours, with whole tables, are handed out; a planted one is never executed."""

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


def kept(root: Path, usage: StageUsage | None = None) -> StageRef:
    """A reference to a table, kept under KEY the way Prefect does it."""
    row = {"row_id": "a", "k": 0, "text": "Why?", "noncommittal": False, "status": "answered"}
    ref = TableStore(str(root)).write(build_table(Stage.QUESTIONS, [row]), QUESTIONS, usage)
    store = ResultStore(result_storage=StageResults(root=str(root)), serializer=StageRefSerializer())
    store.write(ref, KEY)
    return ref


def exists(root: Path) -> bool:
    """Whether Prefect finds a record that it can use."""
    store = ResultStore(result_storage=StageResults(root=str(root)), serializer=StageRefSerializer())
    return store.exists(KEY)


def test_what_was_kept_is_found(tmp_path: Path) -> None:
    ref = kept(tmp_path)
    assert exists(tmp_path)
    assert StageResults(root=str(tmp_path)).find(KEY) == ref


def test_nothing_is_found_where_nothing_was_kept(tmp_path: Path) -> None:
    assert StageResults(root=str(tmp_path)).find(KEY) is None
    with pytest.raises(UnusableRecordError, match="no record"):
        StageResults(root=str(tmp_path)).read_path(KEY)


def test_a_table_with_gaps_is_not_kept(tmp_path: Path) -> None:
    kept(tmp_path, StageUsage(questions=2, failed={"no usable reply": 1}))
    assert not exists(tmp_path)


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_a_record_whose_table_is_damaged_is_not_used(tmp_path: Path, damage: str) -> None:
    table = Path(kept(tmp_path).path)
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
    table = Path(kept(tmp_path).path)
    content = table.read_bytes()
    table.write_bytes(content[:-20] + bytes(20))
    kept(tmp_path)
    assert table.read_bytes() == content
    assert exists(tmp_path)


@pytest.mark.parametrize("serializer", [{"type": "pickle", "picklelib": "cloudpickle"}, {"type": "json"}])
def test_a_planted_record_is_never_executed(tmp_path: Path, serializer: dict[str, str]) -> None:
    kept(tmp_path)
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
    kept(tmp_path)
    place = tmp_path / "results" / f"{KEY}.json"
    place.write_bytes(place.read_bytes()[:40])
    assert not exists(tmp_path)
