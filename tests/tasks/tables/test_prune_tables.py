"""Pruning a table store: files unused for long are removed, files that a run may need stay."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from metric_core.errors import AssayError
from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.sources.in_memory import save_rows
from tasks.tables import tables_in_use
from tasks.tables.inventory import RUNNING, Inventory
from tasks.tables.kept_tables import KeptTables
from tasks.tables.prune_tables import prune_tables
from tasks.tables.row_index import RowIndexes
from tasks.tables.table_files import atomic_write, filesystem
from tasks.tables.table_store import StageRef, TableStore
from tests.tasks.builders import samples_table
from tests.waiting import wait_until

MONTH = datetime.now(UTC) - timedelta(days=30)
DAY = 86_400


def write_with_record(root: Path, key: str, text: str) -> tuple[StageRef, Path]:
    """Write a table with its record, as a run does."""
    ref = TableStore(str(root)).write(samples_table({"user_input": text}), SAMPLES)
    KeptTables(str(root)).keep(key, ref)
    return ref, root / "results" / f"{key}.json"


def age(*paths: Path, days: float) -> None:
    for path in paths:
        os.utime(path, (time.time() - days * DAY,) * 2)


def test_unused_files_are_removed_and_used_ones_stay(tmp_path: Path) -> None:
    (old, old_record), (new, new_record) = (
        write_with_record(tmp_path, "old", "Why?"),
        write_with_record(tmp_path, "new", "How?"),
    )
    age(Path(old.path), old_record, Path(new.path), days=40)
    pruned = prune_tables(str(tmp_path), before=MONTH)
    assert (pruned.records, pruned.tables) == (1, 1)
    assert old_record.exists()
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False) == pruned
    assert pruned.size > 0
    assert [path.exists() for path in (old_record, Path(old.path), new_record, Path(new.path))] == [0, 0, 1, 1]
    assert KeptTables(str(tmp_path)).find("new") == new


def test_least_recently_used_files_are_removed_until_the_rest_fits(tmp_path: Path) -> None:
    stored = [write_with_record(tmp_path, str(days), f"Why {days}?") for days in range(1, 5)]
    for days, (ref, record) in enumerate(stored, start=1):
        age(record, days=days)
        age(Path(ref.path), days=99)  # used through its record only
    long_ago = datetime.now(UTC) - timedelta(days=999)
    sizes = [Path(ref.path).stat().st_size + record.stat().st_size for ref, record in stored]
    for room, stay in ((sum(sizes), 4), (sum(sizes[:2]) + 10, 2), (0, 0)):
        pruned = prune_tables(str(tmp_path), before=long_ago, size=room)
        assert prune_tables(str(tmp_path), before=long_ago, size=room, dry_run=False) == pruned
        for number, (ref, record) in enumerate(stored):
            assert Path(ref.path).exists() == record.exists() == (number < stay)
        assert all(KeptTables(str(tmp_path)).find(str(days)) is not None for days in range(1, stay + 1))
        for days, (_, record) in enumerate(stored[:stay], start=1):
            age(record, days=days)
    ref, _ = write_with_record(tmp_path, "new", "How?")
    assert prune_tables(str(tmp_path), before=long_ago, size=0, dry_run=False).size == 0
    assert Path(ref.path).exists()  # used within the hour


def test_index_of_rows_is_pruned_like_a_record(tmp_path: Path) -> None:
    ref, _ = write_with_record(tmp_path, "one", "Why?")
    RowIndexes(str(tmp_path), "rows.jsonl").write({}, [{Stage.SAMPLES: ref}])
    inventory = Inventory(str(tmp_path))
    (index,) = (entry for entry in inventory.entries() if entry.folder == "rows")
    assert (index.kind, inventory.problem(index)) == ("record", None)
    age(Path(index.path), days=40)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).records == 1
    assert Path(ref.path).exists()


def test_using_a_record_renews_it(tmp_path: Path) -> None:
    ref, record = write_with_record(tmp_path, "one", "Why?")
    age(Path(ref.path), record, days=40)
    assert KeptTables(str(tmp_path)).find("one") == ref
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).size == 0


def test_writing_a_table_again_renews_it(tmp_path: Path) -> None:
    store, table = TableStore(str(tmp_path)), samples_table({"user_input": "Why?"})
    age(Path(store.write(table, SAMPLES).path), days=40)
    ref = store.write(table, SAMPLES)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).tables == 0
    assert Path(ref.path).exists()


def test_files_used_within_the_hour_always_stay(tmp_path: Path) -> None:
    ref, record = write_with_record(tmp_path, "one", "Why?")
    writing = tmp_path / "claims" / ".abc.tmp"
    writing.parent.mkdir()
    writing.write_bytes(b"half")
    age(writing, days=0.5)
    assert prune_tables(str(tmp_path), before=datetime.now(UTC), dry_run=False).size == 0
    assert all(path.exists() for path in (Path(ref.path), record, writing))


def test_temporary_files_are_removed_and_foreign_files_stay(tmp_path: Path) -> None:
    left, other = tmp_path / "claims" / ".abc.tmp", tmp_path / "claims" / "thesis.txt"
    left.parent.mkdir()
    for path in (left, other):
        path.write_bytes(b"half")
        age(path, days=400)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).temporary == 1
    assert (left.exists(), other.exists()) == (False, True)


def test_a_table_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert prune_tables(str(tmp_path / "none"), before=MONTH).size == 0


def test_damage_is_found(tmp_path: Path) -> None:
    ref, record = write_with_record(tmp_path, "one", "Why?")
    inventory = Inventory(str(tmp_path))
    assert [inventory.problem(entry) for entry in inventory.entries()] == [None, None]
    content = Path(ref.path).read_bytes()
    Path(ref.path).write_bytes(content[:-8])
    problems = [inventory.problem(entry) for entry in inventory.entries()]
    assert all(problem is not None and ref.path in problem for problem in problems)
    record.write_text("{", encoding="utf-8")
    assert "cannot be read" in str(inventory.problem(next(inventory.entries())))
    assert {entry.folder for entry in inventory.entries()} == {"results", str(Stage.SAMPLES)}


def note(root: str, started: timedelta, seen: timedelta, *, is_running: bool = True) -> None:
    """Write the heartbeat file of a run, given the time since its start and since its last heartbeat."""
    now = datetime.now(UTC)
    content = {"started": (now - started).isoformat(), "seen": (now - seen).isoformat(), "is_running": is_running}
    fs, folder = filesystem(f"{root}/{RUNNING}")
    atomic_write(fs, f"{folder}/run.json", json.dumps(content).encode())


HOUR = timedelta(hours=1)
NOW = timedelta()


def test_files_that_a_long_run_has_used_stay_until_it_has_ended(tmp_path: Path) -> None:
    (used, _), (unused, _) = write_with_record(tmp_path, "used", "Why?"), write_with_record(tmp_path, "unused", "How?")
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


def test_a_killed_run_does_not_block_pruning_for_long(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(samples_table({"user_input": "Who?"}), SAMPLES)
    age(Path(ref.path), days=0.1)
    note(str(tmp_path), 3 * HOUR, 2 * HOUR)
    age(tmp_path / RUNNING / "run.json", days=2)
    done = prune_tables(str(tmp_path), before=datetime.now(UTC), dry_run=False)
    assert (done.runs, done.tables, done.temporary) == (0, 1, 1)
    assert list((tmp_path / RUNNING).iterdir()) == []


def test_without_recorded_uses_everything_stays_while_a_run_is_in_progress() -> None:
    fsspec.filesystem("memory").store.clear()
    root = "memory://tables"
    ref = TableStore(root).write(samples_table({"user_input": "Who?"}), SAMPLES)
    fs, path = filesystem(ref.path)
    fs.store[path].modified = datetime.now(UTC) - timedelta(days=40)
    note(root, HOUR / 2, NOW)
    assert prune_tables(root, before=MONTH, dry_run=False).tables == 0
    note(root, HOUR / 2, NOW, is_running=False)
    assert prune_tables(root, before=MONTH, dry_run=False).tables == 1


def test_a_run_counts_as_running_as_long_as_it_sends_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_in_use, "HEARTBEAT_SECONDS", 0.01)
    file = tmp_path / RUNNING / "run.json"
    with tables_in_use.mark_in_use(str(tmp_path), "run"):
        (started,) = tables_in_use.start_times(str(tmp_path))
        first = json.loads(file.read_bytes())
        wait_until(lambda: json.loads(file.read_bytes())["seen"] > first["seen"])
        assert tables_in_use.start_times(str(tmp_path)) == [started]
    assert tables_in_use.start_times(str(tmp_path)) == []
    assert not file.exists()


def test_a_table_store_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / RUNNING).write_text("a file where a folder should be")
    with tables_in_use.mark_in_use(str(tmp_path), "run"):
        pass
    assert (tmp_path / RUNNING).is_file()


def test_data_passed_as_objects_are_removed_and_foreign_files_stay(tmp_path: Path) -> None:
    handed = [Path(save_rows([{"response": text}], str(tmp_path))) for text in ("one", "two")]
    (tmp_path / "sources" / "answers.jsonl").write_text("{}")
    age(*(tmp_path / "sources").iterdir(), days=40)
    assert save_rows([{"response": "two"}], str(tmp_path)) == str(handed[1])
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).sources == 1
    assert [path.exists() for path in (*handed, tmp_path / "sources" / "answers.jsonl")] == [False, True, True]


def test_a_table_store_that_cannot_be_listed_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(LocalFileSystem, "exists", refuse)
    with pytest.raises(AssayError, match=r"cannot be read: .*Permission denied"):
        tables_in_use.start_times(str(tmp_path))
