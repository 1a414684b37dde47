"""Files are written atomically, and a missing package is named with the command that installs it."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import fsspec
import pytest
from fsspec.registry import _registry

from metric_core.errors import AssayError, MissingDependencyError, StorageError
from metric_core.schemas import SAMPLES
from tasks.rows.prune_tables import prune_tables
from tasks.rows.table_files import atomic_fs_write, filesystem, open_stored
from tasks.rows.table_store import Samples, TableStore
from tests.tasks.builders import samples_table


class _ObjectStore(fsspec.AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """A file system that records its calls."""

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
    atomic_fs_write(store, "bucket/claims/ab.parquet", b"content")
    assert store.asked == ["put bucket/claims/ab.parquet"]


def test_a_local_file_is_renamed_into_place(tmp_path: Path) -> None:
    fs, path = filesystem(str(tmp_path / "claims" / "ab.parquet"))
    atomic_fs_write(fs, path, b"content")
    assert [file.name for file in (tmp_path / "claims").iterdir()] == ["ab.parquet"]
    assert Path(path).read_bytes() == b"content"


def test_a_location_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("a file where a folder should be")
    fs, path = filesystem(str(tmp_path / "claims" / "ab.parquet"))
    with pytest.raises(AssayError, match="cannot be written"):
        atomic_fs_write(fs, path, b"content")


def test_missing_store_client_is_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[s3\]'"):
        filesystem("s3://bucket/assay")


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(AssayError, match="cannot be opened"):
        filesystem("nowhere://bucket/assay")


class _NoCredentialsError(Exception):
    """An error like those of object store clients: not an OSError."""


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a store whose client finds no credentials."""

    def refused(*_: object, **__: object) -> None:
        raise _NoCredentialsError("Unable to locate credentials")

    monkeypatch.setitem(sys.modules, "botocore.exceptions", SimpleNamespace(BotoCoreError=_NoCredentialsError))
    for name in ("pipe_file", "cat_file", "_open", "mv", "exists"):
        monkeypatch.setattr(fsspec.get_filesystem_class("memory"), name, refused)
    return "memory://bucket/assay"


def test_an_error_of_a_client_becomes_a_message(unreachable: str) -> None:
    fs, path = filesystem(unreachable)
    with pytest.raises(StorageError, match=r"cannot be written: Unable to locate credentials\..*`tables`"):
        atomic_fs_write(fs, path, b"content")
    with pytest.raises(StorageError, match="cannot be written: Unable to locate credentials"):
        TableStore(unreachable).write(samples_table({"response": "It rains."}))
    samples = Samples(path=f"{unreachable}/a.parquet", digest="", rows=1, schema_version=SAMPLES.version)
    with pytest.raises(AssayError, match="cannot be reached: Unable to locate credentials"):
        samples.read()
    with pytest.raises(AssayError, match="cannot be read: Unable to locate credentials"):
        prune_tables(unreachable, before=datetime.now(UTC))


def test_store_that_is_away_is_no_damaged_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **_more: object) -> NoReturn:
        raise OSError(16, "Please reduce your request rate")

    fs = fsspec.filesystem("memory")
    monkeypatch.setattr(type(fs), "open", refuse)
    told = pytest.raises(StorageError, match=r"the table cannot be reached: .*reduce your request rate")
    with told, open_stored("memory://a.parquet", "the table"):
        pass
