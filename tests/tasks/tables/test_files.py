"""Files are there as a whole or not at all, and what is missing is named with the command that installs it."""

import sys
from pathlib import Path

import fsspec
import pytest
from fsspec.registry import _registry

from metric_core.errors import AssayError, MissingDependencyError
from tasks.tables.files import filesystem, write_whole


class _ObjectStore(fsspec.AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """Remembers what it was asked for."""

    protocol = "s3"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def pipe_file(self, path: str, *_: object, **__: object) -> None:
        self.asked.append(f"put {path}")

    def makedirs(self, path: str, *_: object, **__: object) -> None:
        self.asked.append(f"make {path}")


def test_an_object_is_put_once_and_no_folder_is_made() -> None:
    store = _ObjectStore()
    write_whole(store, "bucket/claims/ab.parquet", b"content")
    assert store.asked == ["put bucket/claims/ab.parquet"]


def test_a_local_file_is_renamed_into_place(tmp_path: Path) -> None:
    fs, path = filesystem(str(tmp_path / "claims" / "ab.parquet"))
    write_whole(fs, path, b"content")
    assert [file.name for file in (tmp_path / "claims").iterdir()] == ["ab.parquet"]
    assert Path(path).read_bytes() == b"content"


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("a file where a folder should be")
    fs, path = filesystem(str(tmp_path / "claims" / "ab.parquet"))
    with pytest.raises(AssayError, match="can not be written"):
        write_whole(fs, path, b"content")


def test_a_store_whose_client_is_not_installed_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[s3\]'"):
        filesystem("s3://bucket/assay")


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(AssayError, match="can not be opened"):
        filesystem("nowhere://bucket/assay")
