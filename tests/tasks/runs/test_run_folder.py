"""A run folder belongs to one run at a time, and another one that is refused leaves it as it is."""

from pathlib import Path

import pytest

from metric_core.errors import RunFolderError
from tasks.runs import run_folder


def test_refused_run_leaves_the_folder_of_the_writing_run(tmp_path: Path) -> None:
    with run_folder.lock_folder(tmp_path):
        (tmp_path / run_folder.CALIBRATION).write_text("{}")
        with pytest.raises(RunFolderError, match="another run is writing"), run_folder.lock_folder(tmp_path):
            pass
        assert (tmp_path / run_folder.CALIBRATION).exists()
    with run_folder.lock_folder(tmp_path):
        assert not (tmp_path / run_folder.CALIBRATION).exists()


def test_unwritable_folder_is_a_message(tmp_path: Path) -> None:
    (tmp_path / run_folder.LOCK).mkdir()
    with pytest.raises(RunFolderError, match="cannot be written: Is a directory"), run_folder.lock_folder(tmp_path):
        pass


def test_failed_run_releases_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_folder.lock_folder(tmp_path):
        raise ZeroDivisionError
    with run_folder.lock_folder(tmp_path):
        pass
