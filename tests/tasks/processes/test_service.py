"""The last line and the errors are read from the log of a service."""

from pathlib import Path

from tasks.processes.service import excerpt, last_line


def test_the_last_line_is_the_last_state_of_a_progress_bar(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_text("start\nloading:  10%\rloading:  20%\rloading: 100%\r\n\n")
    assert last_line(log) == "loading: 100%"


def test_an_excerpt_names_each_error_once_and_hides_secrets(tmp_path: Path) -> None:
    log = tmp_path / "log"
    errors = "torch.OutOfMemoryError: CUDA out of memory\n" * 3 + "INFO `OSError: too many files`\n"
    log.write_text(errors + "INFO key=verysecret\n" + "INFO x 1\n" * 20)
    shown = excerpt(log, ["verysecret", "1", ""])
    assert shown.startswith("Errors in it:\n  torch.OutOfMemoryError: CUDA out of memory\nThe end of its log")
    assert "verysecret" not in shown
    assert "INFO x 1" in shown
