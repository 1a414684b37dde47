"""A run folder belongs to one run at a time, and another one that is refused leaves it as it is."""

from pathlib import Path

import pytest

from metric_core.errors import RunFolderError
from tasks.runs.run_folder import CALIBRATION, LOCK, RunFolder


def test_refused_run_leaves_the_folder_of_the_writing_run(tmp_path: Path) -> None:
    with RunFolder(tmp_path).lock():
        (tmp_path / CALIBRATION).write_text("{}")
        with pytest.raises(RunFolderError, match="another run is writing"), RunFolder(tmp_path).lock():
            pass
        assert (tmp_path / CALIBRATION).exists()
    with RunFolder(tmp_path).lock():
        assert not (tmp_path / CALIBRATION).exists()


def test_unwritable_folder_is_a_message(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(RunFolderError, match="cannot be written: Is a directory"), RunFolder(tmp_path).lock():
        pass


def test_failed_run_releases_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunFolder(tmp_path).lock():
        raise ZeroDivisionError
    with RunFolder(tmp_path).lock():
        pass
