"""A run folder belongs to one run at a time, and another one that is refused leaves it as it is."""

from pathlib import Path

import pytest

from metric_core.errors import RunFolderError
from tasks.runs import run_folder


def test_a_run_that_is_refused_takes_nothing_from_the_one_that_is_writing(tmp_path: Path) -> None:
    with run_folder.lock_folder(tmp_path):
        (tmp_path / run_folder.CALIBRATION).write_text("{}")
        with pytest.raises(RunFolderError, match="another run is writing"), run_folder.lock_folder(tmp_path):
            pass
        assert (tmp_path / run_folder.CALIBRATION).exists()
    with run_folder.lock_folder(tmp_path):
        assert not (tmp_path / run_folder.CALIBRATION).exists()


def test_a_folder_that_can_not_be_written_is_a_message(tmp_path: Path) -> None:
    (tmp_path / run_folder.LOCK).mkdir()
    with pytest.raises(RunFolderError, match="cannot be written: Is a directory"), run_folder.lock_folder(tmp_path):
        pass


def test_a_run_that_fails_lets_go_of_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_folder.lock_folder(tmp_path):
        raise ZeroDivisionError
    with run_folder.lock_folder(tmp_path):
        pass
