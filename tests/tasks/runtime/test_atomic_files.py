"""A file is replaced whole or stays as it was, and the error says what could not be written."""

import errno
import os
import stat
from pathlib import Path

import pytest

from metric_core.errors import AssayError, RunFolderError
from tasks.runtime.atomic_files import (
    append_whole,
    atomic_file,
    atomic_write,
    create_private_file,
    is_temporary,
    temporary_name,
    translate_write_errors,
    write_output,
)
from tests.full_disk import fill, full_after, small_disk


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


def test_a_file_and_its_name_are_on_the_disk_before_the_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    synced = []

    def record(file: int) -> None:
        name = Path(f"/proc/self/fd/{file}").readlink()
        synced.append((name, name.is_file(), path.exists()))

    monkeypatch.setattr(os, "fsync", record)
    atomic_write(path, "one\n")
    assert synced == [(tmp_path / temporary_name("run.json"), True, False), (tmp_path, False, True)]


def test_folders_and_files_are_created_for_the_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_private_file(tmp_path / "home" / "cache" / "answers.db")
        append_whole(tmp_path / "home" / "alerts" / "alerts.jsonl", b"{}\n")
        (tmp_path / "shared").mkdir(mode=0o770)
        (tmp_path / "shared" / "answers.db").touch(mode=0o660)
        create_private_file(tmp_path / "shared" / "answers.db")
    finally:
        os.umask(before)
    modes = {path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {
        "home": 0o700,
        "home/cache": 0o700,
        "home/cache/answers.db": 0o600,
        "home/alerts": 0o700,
        "home/alerts/alerts.jsonl": 0o600,
        "shared": 0o770,
        "shared/answers.db": 0o660,
    }


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    path.touch()
    path.chmod(0o640)
    write_output(path, "one\n", "the configuration")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_a_device_is_written_and_not_replaced(name: str) -> None:
    before = Path(name).lstat().st_ino
    write_output(Path(name), "one\n", "the page")
    assert Path(name).lstat().st_ino == before or name == "/dev/fd/1"
    assert not Path(name).with_name(f".{Path(name).name}.tmp").exists()


def test_what_is_appended_to_a_full_disk_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    append_whole(path, b"one\n")
    with full_after(10), pytest.raises(OSError, match="File too large"):
        append_whole(path, b"two two two\n")
    assert path.read_bytes() == b"one\n"
    append_whole(path, b"three\n")
    assert path.read_bytes() == b"one\nthree\n"


def test_what_is_appended_to_a_small_disk_leaves_no_part(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 * 1024) as disk:
        path = disk / "alerts.jsonl"
        append_whole(path, b"one\n")
        filling = fill(disk)
        with pytest.raises(OSError, match="No space") as raised:
            append_whole(path, bytes(8192))
        assert raised.value.errno == errno.ENOSPC
        assert path.read_bytes() == b"one\n"
        filling.unlink()
        append_whole(path, b"two\n")
        assert path.read_bytes() == b"one\ntwo\n"
