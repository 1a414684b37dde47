"""Rows in damaged files are not found: they are computed again, and the file is named once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from metric_core.errors import AssayError
from tasks.rows.row_store import RowStore
from tasks.rows.segment_files import decode_index, encode_index
from tests.tasks.rows.row_results import RECIPE, STAGE, append, find, keys_of


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-8])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: list[tuple[str, Callable[[Path], None], str]] = [
    (".parquet", Path.unlink, "No such file"),
    (".parquet", cut, "bytes instead of"),
    (".parquet", empty, "bytes instead of"),
    (".parquet", flip, "has been changed since it was written"),
    (".index", cut, "does not match its digest"),
    (".index", empty, "does not match its digest"),
    (".index", flip, "does not match its digest"),
    (".index", replace_by_folder, "Is a directory"),
]


@pytest.mark.parametrize(("suffix", "damage", "problem"), DAMAGES)
def test_rows_in_a_damaged_file_are_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str, damage: Callable[[Path], None], problem: str
) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Why?"], "b": ["How?"]})
    (file,) = tmp_path.rglob(f"*{suffix}")
    append(RowStore(str(tmp_path)), {"c": ["When?"]})
    damage(file)
    store = RowStore(str(tmp_path))
    for _ in range(2):
        assert find(store, ["a", "b", "c"]) == {"c": ["When?"]}
    (record,) = caplog.records
    assert file.name.partition(".")[0] in record.getMessage()
    assert problem in record.getMessage()
    append(store, {"a": ["Why not?"], "b": []})
    everything = {"a": ["Why not?"], "b": [], "c": ["When?"]}
    assert find(store, ["a", "b", "c"]) == everything
    assert find(RowStore(str(tmp_path)), ["a", "b", "c"]) == everything


def test_damage_to_rows_that_are_read_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    placed = append(RowStore(str(tmp_path)), {"a": ["Why?"]})
    flip(Path(placed.segments[0].path))
    with pytest.raises(AssayError, match=r"(?s)cannot be read .*Delete it and run the evaluation again"):
        RowStore(str(tmp_path)).read(STAGE, placed)


def test_rows_of_another_recipe_in_the_same_folder_are_not_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Why?"]})
    (index,) = tmp_path.rglob("*.index")
    content = decode_index(index.read_bytes())
    other = content.note.model_copy(update={"recipe": "another recipe"})
    index.write_bytes(
        encode_index(type(content)(other, *(content.keys, content.digests), content.start, content.count))
    )
    assert find(RowStore(str(tmp_path)), ["a"]) == {}
    assert not caplog.records


def test_rows_of_a_schema_version_that_cannot_be_read_are_not_found(tmp_path: Path) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Why?"]})
    (index,) = tmp_path.rglob("*.index")
    content = decode_index(index.read_bytes())
    later = content.note.model_copy(update={"schema_version": 99})
    index.write_bytes(
        encode_index(type(content)(later, *(content.keys, content.digests), content.start, content.count))
    )
    assert find(RowStore(str(tmp_path)), ["a"]) == {}


def test_files_of_other_writers_are_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Why?"]})
    (data,) = tmp_path.rglob("*.parquet")
    shutil.copy(data, data.with_name("thesis.parquet"))
    for name in ("thesis.index", ".thesis.index.tmp"):
        data.with_name(name).write_bytes(b"half")
    assert find(RowStore(str(tmp_path)), ["a"]) == {"a": ["Why?"]}
    assert not caplog.records


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("a file where a folder should be")
    store = RowStore(str(tmp_path))
    assert store.find(STAGE, RECIPE, keys_of(["a"])).missing.all()
    with pytest.raises(AssayError, match=r"cannot be written: .*`tables`"):
        append(store, {"a": ["Why?"]})


def test_a_place_that_cannot_be_reached_has_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    append(RowStore(str(tmp_path)), {"a": ["Why?"]})
    monkeypatch.setattr(LocalFileSystem, "ls", refuse)
    assert find(RowStore(str(tmp_path)), ["a"]) == {}
    (record,) = caplog.records
    assert "Permission denied" in record.getMessage()
