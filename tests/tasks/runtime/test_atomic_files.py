"""A file is replaced whole or stays as it was, and the error says what could not be written."""

from pathlib import Path

import pytest

from metric_core.errors import AssayError, RunFolderError
from tasks.runtime.atomic_files import atomic_file, atomic_write, is_temporary, translate_write_errors


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    atomic_write(path, "one\n")
    atomic_write(path, "two\n")
    assert path.read_bytes() == b"two\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    atomic_write(path, "one\n")

    def fail() -> None:
        with atomic_file(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            assert is_temporary(temporary.name)
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail()
    assert path.read_bytes() == b"one\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "run.json"
    message = rf"^the record {path} cannot be written: No such file or directory\. Check the folder\.$"
    translated = translate_write_errors(f"the record {path}", RunFolderError, "Check the folder.")
    with pytest.raises(RunFolderError, match=message), translated:
        atomic_write(path, "one\n")
    with pytest.raises(AssayError, match="the record cannot be written"), translate_write_errors("the record"):
        atomic_write(path, "one\n")
