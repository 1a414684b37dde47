"""Pruning a store of stage tables: what is unused for long goes, what anybody may need stays."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pytest

from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.prefect_support.stage_results import StageRefSerializer, StageResults
from tasks.sources.in_memory import save_rows
from tasks.tables import tables_in_use
from tasks.tables.inventory import RUNNING, Inventory
from tasks.tables.prune_tables import prune_tables
from tasks.tables.table_files import atomic_write, filesystem
from tasks.tables.table_store import StageRef, TableStore
from tests.tasks.builders import samples_table
from tests.tasks.cache.helpers import wait_until

MONTH = datetime.now(UTC) - timedelta(days=30)
DAY = 86_400


def kept(root: Path, key: str, text: str) -> tuple[StageRef, Path]:
    """A table with its record, as a run leaves them."""
    ref = TableStore(str(root)).write(samples_table({"user_input": text}), SAMPLES)
    serializer = StageRefSerializer()
    record = {"metadata": {"serializer": serializer.model_dump(mode="json")}, "result": serializer.dumps(ref).decode()}
    StageResults(root=str(root)).write_path(key, json.dumps(record).encode())
    return ref, root / "results" / f"{key}.json"


def age(*paths: Path, days: float) -> None:
    for path in paths:
        os.utime(path, (time.time() - days * DAY,) * 2)


def test_what_is_unused_goes_and_what_is_used_stays(tmp_path: Path) -> None:
    (old, old_record), (new, new_record) = kept(tmp_path, "old", "Why?"), kept(tmp_path, "new", "How?")
    age(Path(old.path), old_record, Path(new.path), days=40)
    told = prune_tables(str(tmp_path), before=MONTH)
    assert (told.records, told.tables) == (1, 1)
    assert old_record.exists()
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False) == told
    assert told.size > 0
    assert [path.exists() for path in (old_record, Path(old.path), new_record, Path(new.path))] == [0, 0, 1, 1]
    assert StageResults(root=str(tmp_path)).find("new") == new


def test_what_is_unused_for_longest_goes_until_the_rest_fits(tmp_path: Path) -> None:
    stored = [kept(tmp_path, str(days), f"Why {days}?") for days in range(1, 5)]
    for days, (ref, record) in enumerate(stored, start=1):
        age(record, days=days)
        age(Path(ref.path), days=99)  # used through its record only
    long_ago = datetime.now(UTC) - timedelta(days=999)
    sizes = [Path(ref.path).stat().st_size + record.stat().st_size for ref, record in stored]
    for room, stay in ((sum(sizes), 4), (sum(sizes[:2]) + 10, 2), (0, 0)):
        told = prune_tables(str(tmp_path), before=long_ago, size=room)
        assert prune_tables(str(tmp_path), before=long_ago, size=room, dry_run=False) == told
        for number, (ref, record) in enumerate(stored):
            assert Path(ref.path).exists() == record.exists() == (number < stay)
        assert all(StageResults(root=str(tmp_path)).find(str(days)) is not None for days in range(1, stay + 1))
        for days, (_, record) in enumerate(stored[:stay], start=1):
            age(record, days=days)
    ref, _ = kept(tmp_path, "new", "How?")
    assert prune_tables(str(tmp_path), before=long_ago, size=0, dry_run=False).size == 0
    assert Path(ref.path).exists()  # used within the hour


def test_a_record_that_is_used_is_young_again(tmp_path: Path) -> None:
    ref, record = kept(tmp_path, "one", "Why?")
    age(Path(ref.path), record, days=40)
    assert StageResults(root=str(tmp_path)).find("one") == ref
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).size == 0


def test_a_table_that_is_written_again_is_young_again(tmp_path: Path) -> None:
    store, table = TableStore(str(tmp_path)), samples_table({"user_input": "Why?"})
    age(Path(store.write(table, SAMPLES).path), days=40)
    ref = store.write(table, SAMPLES)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).tables == 0
    assert Path(ref.path).exists()


def test_what_was_used_within_the_hour_stays_whatever_is_asked(tmp_path: Path) -> None:
    ref, record = kept(tmp_path, "one", "Why?")
    writing = tmp_path / "claims" / ".abc.tmp"
    writing.parent.mkdir()
    writing.write_bytes(b"half")
    age(writing, days=0.5)
    assert prune_tables(str(tmp_path), before=datetime.now(UTC), dry_run=False).size == 0
    assert all(path.exists() for path in (Path(ref.path), record, writing))


def test_what_writers_left_behind_goes_and_other_files_stay(tmp_path: Path) -> None:
    left, other = tmp_path / "claims" / ".abc.tmp", tmp_path / "claims" / "thesis.txt"
    left.parent.mkdir()
    for path in (left, other):
        path.write_bytes(b"half")
        age(path, days=400)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).temporary == 1
    assert (left.exists(), other.exists()) == (False, True)


def test_a_store_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert prune_tables(str(tmp_path / "none"), before=MONTH).size == 0


def test_damage_is_found(tmp_path: Path) -> None:
    ref, record = kept(tmp_path, "one", "Why?")
    inventory = Inventory(str(tmp_path))
    assert [inventory.problem(entry) for entry in inventory.entries()] == [None, None]
    content = Path(ref.path).read_bytes()
    Path(ref.path).write_bytes(content[:-8])
    problems = [inventory.problem(entry) for entry in inventory.entries()]
    assert all(problem is not None and ref.path in problem for problem in problems)
    record.write_text("{", encoding="utf-8")
    assert "can not be read" in str(inventory.problem(next(inventory.entries())))
    assert {entry.folder for entry in inventory.entries()} == {"results", str(Stage.SAMPLES)}


def note(root: str, started: timedelta, seen: timedelta, *, is_running: bool = True) -> None:
    """What a run leaves that began, and was heard of, so long ago."""
    now = datetime.now(UTC)
    content = {"started": (now - started).isoformat(), "seen": (now - seen).isoformat(), "is_running": is_running}
    fs, folder = filesystem(f"{root}/{RUNNING}")
    atomic_write(fs, f"{folder}/run.json", json.dumps(content).encode())


HOUR = timedelta(hours=1)
NOW = timedelta()


def test_what_a_long_run_has_used_stays_until_it_has_ended(tmp_path: Path) -> None:
    (used, _), (unused, _) = kept(tmp_path, "used", "Why?"), kept(tmp_path, "unused", "How?")
    samples = TableStore(str(tmp_path)).write(samples_table({"user_input": "Who?"}), SAMPLES)  # has no record

    def prune() -> list[bool]:
        done = prune_tables(str(tmp_path), before=datetime.now(UTC), size=0, dry_run=False)
        assert done.runs == (samples_path.exists())
        return [Path(ref.path).exists() for ref in (used, unused, samples)]

    samples_path = Path(samples.path)
    for path, days in ((used.path, 9), (unused.path, 9), (samples.path, 0.1)):
        age(Path(path), days=days)
    age(tmp_path / "results" / "used.json", days=0.1)
    age(tmp_path / "results" / "unused.json", days=9)
    note(str(tmp_path), 3 * HOUR, NOW)
    assert prune() == [True, False, True]
    note(str(tmp_path), 3 * HOUR, NOW, is_running=False)
    assert prune() == [False, False, False]


def test_a_run_that_was_killed_holds_nothing_up_for_long(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(samples_table({"user_input": "Who?"}), SAMPLES)
    age(Path(ref.path), days=0.1)
    note(str(tmp_path), 3 * HOUR, 2 * HOUR)
    age(tmp_path / RUNNING / "run.json", days=2)
    done = prune_tables(str(tmp_path), before=datetime.now(UTC), dry_run=False)
    assert (done.runs, done.tables, done.temporary) == (0, 1, 1)
    assert list((tmp_path / RUNNING).iterdir()) == []


def test_where_use_leaves_no_trace_everything_stays_while_a_run_is_under_way() -> None:
    fsspec.filesystem("memory").store.clear()
    root = "memory://tables"
    ref = TableStore(root).write(samples_table({"user_input": "Who?"}), SAMPLES)
    fs, path = filesystem(ref.path)
    fs.store[path].modified = datetime.now(UTC) - timedelta(days=40)
    note(root, HOUR / 2, NOW)
    assert prune_tables(root, before=MONTH, dry_run=False).tables == 0
    note(root, HOUR / 2, NOW, is_running=False)
    assert prune_tables(root, before=MONTH, dry_run=False).tables == 1


def test_a_run_is_under_way_as_long_as_it_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_in_use, "PERIOD", 0.01)
    file = tmp_path / RUNNING / "run.json"
    with tables_in_use.mark_in_use(str(tmp_path), "run"):
        (started,) = tables_in_use.oldest_start(str(tmp_path))
        first = json.loads(file.read_bytes())
        wait_until(lambda: json.loads(file.read_bytes())["seen"] > first["seen"])
        assert tables_in_use.oldest_start(str(tmp_path)) == [started]
    assert tables_in_use.oldest_start(str(tmp_path)) == []
    assert not file.exists()


def test_a_store_that_can_not_be_written_is_used_all_the_same(tmp_path: Path) -> None:
    (tmp_path / RUNNING).write_text("a file where a folder should be")
    with tables_in_use.mark_in_use(str(tmp_path), "run"):
        pass
    assert (tmp_path / RUNNING).is_file()


def test_data_that_were_handed_over_go_and_the_files_of_others_stay(tmp_path: Path) -> None:
    handed = [Path(save_rows([{"response": text}], str(tmp_path))) for text in ("one", "two")]
    (tmp_path / "sources" / "answers.jsonl").write_text("{}")
    age(*(tmp_path / "sources").iterdir(), days=40)
    assert save_rows([{"response": "two"}], str(tmp_path)) == str(handed[1])
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).sources == 1
    assert [path.exists() for path in (*handed, tmp_path / "sources" / "answers.jsonl")] == [False, True, True]
