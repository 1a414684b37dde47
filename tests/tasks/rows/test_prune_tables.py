"""Pruning a table store: what has not been used for long is removed, what a run may need stays."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from metric_core.errors import AssayError
from tasks.rows import tables_in_use
from tasks.rows.inventory import Inventory
from tasks.rows.prune_tables import prune_tables
from tasks.rows.row_store import RowStore
from tasks.rows.table_files import RUNNING, atomic_fs_write, filesystem
from tasks.rows.table_store import TableStore
from tasks.sources.in_memory import save_rows
from tests.tasks.builders import samples_table
from tests.tasks.rows.row_results import RECIPE, append, find
from tests.waiting import wait_until

MONTH = datetime.now(UTC) - timedelta(days=30)
DAY = 86_400
HOUR = timedelta(hours=1)
NOW = timedelta()


def write_segment(root: Path, name: str, text: str = "Why?", recipe: str | None = RECIPE) -> list[Path]:
    """Store a result as a segment, and return the files of the segment."""
    (segment,) = append(RowStore(str(root)), {name: [text]}, recipe).segments
    return sorted(Path(segment.path).parent.glob(f"{Path(segment.path).stem}.*"))


def age(*paths: Path, days: float) -> None:
    for path in paths:
        os.utime(path, (time.time() - days * DAY,) * 2)


def note(root: str, started: timedelta, seen: timedelta, *, is_running: bool = True) -> None:
    """Write the heartbeat file of a run, given the time since its start and since its last heartbeat."""
    now = datetime.now(UTC)
    content = {"started": (now - started).isoformat(), "seen": (now - seen).isoformat(), "is_running": is_running}
    fs, folder = filesystem(f"{root}/{RUNNING}")
    atomic_fs_write(fs, f"{folder}/run.json", json.dumps(content).encode())


def test_unused_rows_are_removed_and_used_ones_stay(tmp_path: Path) -> None:
    old, new = write_segment(tmp_path, "old"), write_segment(tmp_path, "new", recipe="another recipe")
    age(*old, *new, days=40)
    assert find(RowStore(str(tmp_path)), ["new"], "another recipe") == {"new": ["Why?"]}
    pruned = prune_tables(str(tmp_path), before=MONTH)
    assert (pruned.segments, pruned.size) == (1, sum(path.stat().st_size for path in old))
    assert all(path.exists() for path in old)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False) == pruned
    assert [path.exists() for path in (*old, *new)] == [False, False, True, True]
    assert find(RowStore(str(tmp_path)), ["new"], "another recipe") == {"new": ["Why?"]}
    assert find(RowStore(str(tmp_path)), ["old"]) == {}


def test_a_store_that_is_only_read_does_not_renew_rows(tmp_path: Path) -> None:
    age(*write_segment(tmp_path, "old"), days=40)
    assert find(RowStore(str(tmp_path), read_only=True), ["old"]) == {"old": ["Why?"]}
    assert prune_tables(str(tmp_path), before=MONTH).segments == 1


def test_least_recently_used_files_are_removed_until_the_rest_fits(tmp_path: Path) -> None:
    stored = [write_segment(tmp_path, "a", recipe=f"recipe {days}") for days in range(1, 5)]
    for days, files in enumerate(stored, start=1):
        age(*files, days=days)
    long_ago = datetime.now(UTC) - timedelta(days=999)
    sizes = [sum(path.stat().st_size for path in files) for files in stored]
    for room, stay in ((sum(sizes), 4), (sum(sizes[:2]) + 10, 2), (0, 0)):
        pruned = prune_tables(str(tmp_path), before=long_ago, size=room)
        assert prune_tables(str(tmp_path), before=long_ago, size=room, dry_run=False) == pruned
        for number, files in enumerate(stored):
            assert [path.exists() for path in files] == [number < stay] * 2
    files = write_segment(tmp_path, "a")
    assert prune_tables(str(tmp_path), before=long_ago, size=0, dry_run=False).size == 0
    assert all(path.exists() for path in files)  # used within the hour


def test_writing_a_table_again_renews_it(tmp_path: Path) -> None:
    store, table = TableStore(str(tmp_path)), samples_table({"user_input": "Why?"})
    age(Path(store.write(table).path), days=40)
    ref = store.write(table)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).tables == 0
    age(Path(ref.path), days=40)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).tables == 1
    assert not Path(ref.path).exists()


def test_files_used_within_the_hour_always_stay(tmp_path: Path) -> None:
    files = write_segment(tmp_path, "a")
    writing = files[0].with_name(".abc.tmp")
    writing.write_bytes(b"half")
    age(writing, days=0.5)
    assert prune_tables(str(tmp_path), before=datetime.now(UTC), dry_run=False).size == 0
    assert all(path.exists() for path in (*files, writing))


def test_temporary_files_are_removed_and_foreign_files_stay(tmp_path: Path) -> None:
    folder = write_segment(tmp_path, "a")[0].parent
    left = [folder / ".abc.tmp", tmp_path / "samples" / ".abc.tmp"]
    others = [folder / "thesis.parquet", tmp_path / "samples" / "thesis.txt"]
    left[1].parent.mkdir()
    for path in (*left, *others):
        path.write_bytes(b"half")
        age(path, days=400)
    assert prune_tables(str(tmp_path), before=MONTH, dry_run=False).temporary == 2
    assert [path.exists() for path in (*left, *others)] == [False, False, True, True]


def test_a_table_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert prune_tables(str(tmp_path / "none"), before=MONTH).size == 0


def test_damage_is_found(tmp_path: Path) -> None:
    index, data = write_segment(tmp_path, "a")
    _, unfound = write_segment(tmp_path, "b"), write_segment(tmp_path, "c", recipe=None)[0]
    samples = Path(TableStore(str(tmp_path)).write(samples_table({"user_input": "Why?"})).path)
    inventory = Inventory(str(tmp_path))
    assert [inventory.problem(entry) for entry in inventory.entries()] == [None] * 4
    for path in (index, data, unfound, samples):
        content = path.read_bytes()
        path.write_bytes(content[:-8])
        (problem,) = {found for entry in inventory.entries() if (found := inventory.problem(entry)) is not None}
        assert path.stem in problem
        path.unlink()
        problems = {inventory.problem(entry) for entry in inventory.entries()} - {None}
        assert bool(problems) == (path == data)
        path.write_bytes(content)


def test_rows_that_a_long_run_has_used_stay_until_it_has_ended(tmp_path: Path) -> None:
    used, unused = write_segment(tmp_path, "a", recipe="one"), write_segment(tmp_path, "a", recipe="other")
    samples = Path(TableStore(str(tmp_path)).write(samples_table({"user_input": "Who?"})).path)

    def prune() -> list[bool]:
        done = prune_tables(str(tmp_path), before=datetime.now(UTC), size=0, dry_run=False)
        assert done.runs == samples.exists()
        return [path.exists() for path in (used[0], unused[0], samples)]

    age(*used, samples, days=0.1)
    age(*unused, days=9)
    note(str(tmp_path), 3 * HOUR, NOW)
    assert prune() == [True, False, True]
    note(str(tmp_path), 3 * HOUR, NOW, is_running=False)
    assert prune() == [False, False, False]


def test_a_killed_run_does_not_block_pruning_for_long(tmp_path: Path) -> None:
    ref = TableStore(str(tmp_path)).write(samples_table({"user_input": "Who?"}))
    age(Path(ref.path), days=0.1)
    note(str(tmp_path), 3 * HOUR, 2 * HOUR)
    age(tmp_path / RUNNING / "run.json", days=2)
    done = prune_tables(str(tmp_path), before=datetime.now(UTC), dry_run=False)
    assert (done.runs, done.tables, done.temporary) == (0, 1, 1)
    assert list((tmp_path / RUNNING).iterdir()) == []


def test_without_recorded_uses_everything_stays_while_a_run_is_in_progress() -> None:
    fsspec.filesystem("memory").store.clear()
    root = "memory://tables"
    ref = TableStore(root).write(samples_table({"user_input": "Who?"}))
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


@pytest.mark.parametrize("content", ["{", "{}", '{"started": "now", "seen": "now"}'])
def test_a_run_of_which_it_is_unknown_whether_it_ended_keeps_its_tables(tmp_path: Path, content: str) -> None:
    (tmp_path / RUNNING).mkdir()
    (tmp_path / RUNNING / "run.json").write_text(content)
    with pytest.raises(AssayError, match=r"run\.json is damaged.*Delete it once that run has ended"):
        prune_tables(str(tmp_path), before=MONTH, dry_run=False)


def test_a_heartbeat_that_cannot_be_read_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise OSError(5, "Input/output error")

    with tables_in_use.mark_in_use(str(tmp_path), "run"):
        monkeypatch.setattr(LocalFileSystem, "cat_file", refuse)
        with pytest.raises(AssayError, match=r"cannot be read: .*Input/output error"):
            tables_in_use.start_times(str(tmp_path))
