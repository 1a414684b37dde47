"""Whether files can be written is found out without leaving anything behind."""

from pathlib import Path

import pytest

from metric_core.errors import RunFolderError
from tasks.runtime.writable import check_file, probe_folder


def test_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    probe_folder(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"):
        probe_folder(tmp_path / "file")
    with pytest.raises(OSError, match="Not a directory"):
        probe_folder(tmp_path / "file" / "below")
    with pytest.raises(FileNotFoundError):
        probe_folder(Path("/proc/nowhere/below"))  # root, too, may write nothing there


def test_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    check_file(tmp_path / "new" / "page.html", "the page")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RunFolderError, match=r"the page .* cannot be written: .* is a folder, not a file"):
        check_file(tmp_path, "the page", RunFolderError)
