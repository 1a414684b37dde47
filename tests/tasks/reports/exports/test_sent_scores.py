"""Scores of a finished run at the endpoint of its configuration: what fails is a warning that says how to repeat it."""

from pathlib import Path

import pytest

from tasks.reports.exports.send_scores import send_scores_of_run
from tests.tasks.compared import write_run
from tests.tasks.reports.exports.otlp_receiver import OtlpReceiver


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", 0.5)


def test_the_scores_of_a_run_are_sent(run: Path) -> None:
    with OtlpReceiver() as receiver:
        assert send_scores_of_run(receiver.url, run) == ()
    assert len(receiver.logs) == 80


def test_an_endpoint_that_refuses_is_a_warning_with_the_command_that_sends_them_again(run: Path) -> None:
    with OtlpReceiver(status=400) as receiver:
        (warning,) = send_scores_of_run(receiver.url, run)
    assert "the scores of 0 rows were sent to" in warning
    assert warning.endswith(f": assay export {run} --otlp {receiver.url}")
