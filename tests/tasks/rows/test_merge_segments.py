"""Pruning merges small segments: every latest row is found as before, also by runs that are in progress."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rows import merge_segments
from tasks.rows.prune_tables import PrunedTables, prune_tables
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import StageUsage
from tests.tasks.rows.row_results import RECIPE, STAGE, append, find, keys_of
from tests.tasks.rows.test_prune_tables import HOUR, NOW, note

LONG_AGO = datetime.now(UTC) - timedelta(days=999)
NAMES = "abcdef"


def prune(root: str, *, dry_run: bool = False) -> PrunedTables:
    return prune_tables(root, before=LONG_AGO, dry_run=dry_run)


def age(root: str, hours: float) -> None:
    """Make all files of a store look as if they were last used some hours ago."""
    for path in Path(root).rglob("*.*"):
        os.utime(path, (time.time() - hours * 3600,) * 2)


def count_segments(root: str) -> int:
    return len(list(Path(root).rglob("*.index")))


@given(
    st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.lists(st.text("xyz", max_size=2), max_size=2), max_size=4),
        max_size=8,
    ),
    st.integers(2, 6),
    st.sets(st.integers(0, 7)),
)
def test_every_latest_row_stays(appended: list[dict[str, list[str]]], samples: int, pruned_after: set[int]) -> None:
    expected: dict[str, list[str]] = {}
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_segments, "MERGED_SAMPLES", samples)
        for number, results in enumerate(appended):
            earlier = RowStore(root)
            before = find(earlier, list(NAMES))
            append(RowStore(root), results)
            expected |= results
            if number in pruned_after:
                prune(root)
                assert find(earlier, list(NAMES)) == before  # as a run in progress would
            assert find(RowStore(root), list(NAMES)) == expected
        age(root, hours=2)
        assert prune(root, dry_run=True) == prune(root)
        assert find(RowStore(root), list(NAMES)) == expected
        prune(root)
        age(root, hours=2)
        assert prune(root).merged == 0  # merging comes to an end
        assert find(RowStore(root), list(NAMES)) == expected


def test_merged_segments_are_removed_when_no_run_can_read_them(tmp_path: Path) -> None:
    root = str(tmp_path)
    for name in "abc":
        append(RowStore(root), {name: [name]})
    age(root, hours=2)
    store = RowStore(root)
    assert find(store, ["a"]) == {"a": ["a"]}
    done = prune(root)
    assert (done.merged, done.segments, count_segments(root)) == (3, 2, 2)  # one was used within the hour
    assert find(store, ["a"]) == {"a": ["a"]}
    age(root, hours=2)
    note(root, 3 * HOUR, NOW)
    assert prune(root).segments == 0
    note(root, HOUR, NOW)
    assert prune(root).segments == 1
    assert find(RowStore(root), ["a", "b", "c"]) == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert count_segments(root) == 1


def test_a_row_that_is_written_while_segments_are_merged_replaces_theirs(tmp_path: Path) -> None:
    root = str(tmp_path)
    for text in ("one", "two"):
        append(RowStore(root), {"a": [text], text: [text]})
    aged = sorted(tmp_path.rglob("*.*"))
    append(RowStore(root), {"a": ["three"]})
    latest = [path for path in sorted(tmp_path.rglob("*.*")) if path not in aged]
    hidden = [path.rename(path.with_name(f"{path.name}.hidden")) for path in latest]
    assert prune(root).merged == 2
    for path in hidden:
        path.rename(path.with_suffix(""))
    assert find(RowStore(root), ["a", "one", "two"]) == {"a": ["three"], "one": ["one"], "two": ["two"]}


def test_superseded_rows_are_removed(tmp_path: Path) -> None:
    root = str(tmp_path)
    for text in ("one", "two"):
        append(RowStore(root), {"a": [text]})
    append(RowStore(root), {"b": ["never found"]}, recipe=None)
    assert prune(root).segments == 0
    age(root, hours=2)
    done = prune(root)
    assert (done.segments, done.merged) == (2, 0)
    assert find(RowStore(root), ["a"]) == {"a": ["two"]}
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_segments_of_different_days_are_not_merged(tmp_path: Path) -> None:
    root = str(tmp_path)
    for name in "ab":
        append(RowStore(root), {name: [name]})
        age(root, hours=50)
    append(RowStore(root), {"c": ["c"]})
    assert prune(root).merged == 2
    assert prune_tables(root, before=datetime.now(UTC) - 24 * HOUR, dry_run=False).segments == 1
    assert find(RowStore(root), ["a", "b", "c"]) == {"c": ["c"]}


def test_large_segments_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_segments, "MERGED_SAMPLES", 4)
    root = str(tmp_path)
    for names in ("ab", "cd", "e", "f"):
        append(RowStore(root), {name: [name] for name in names})
    assert prune(root).merged == 2


def test_damaged_segments_are_left_out_of_merged_ones(tmp_path: Path) -> None:
    root = str(tmp_path)
    files = [Path(append(RowStore(root), {name: [name]}).segments[0].path) for name in "abc"]
    content = bytearray(files[1].read_bytes())
    content[len(content) // 2] ^= 0xFF
    files[1].write_bytes(content)
    assert prune(root).merged == 2
    assert find(RowStore(root), ["a", "b", "c"]) == {"a": ["a"], "c": ["c"]}


def test_merged_rows_cost_what_they_cost_before(tmp_path: Path) -> None:
    root = str(tmp_path)
    append(RowStore(root), {"a": ["1"], "b": ["2"]}, usage=StageUsage(questions=6, long_texts=2))
    append(RowStore(root), {"a": ["3"]}, usage=StageUsage(questions=4, long_texts=1))
    assert prune(root).merged == 2
    store = RowStore(root)
    placed = store.find(STAGE, RECIPE, keys_of(["a", "b"]))
    assert len(placed.segments) == 1
    assert store.usage_of([placed]) == StageUsage(questions=7, stored=7, long_texts=2)


def test_merging_works_at_a_url_and_removes_nothing_while_a_run_is_in_progress() -> None:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    root = "memory://tables"
    for name in "ab":
        append(RowStore(root), {name: [name]})
    for file in fs.store.values():
        file.modified = datetime.now(UTC) - timedelta(hours=2)
    note(root, HOUR, NOW)
    done = prune(root)
    assert (done.merged, done.segments) == (2, 0)
    note(root, HOUR, NOW, is_running=False)
    assert prune(root).segments == 2
    assert find(RowStore(root), ["a", "b"]) == {"a": ["a"], "b": ["b"]}
