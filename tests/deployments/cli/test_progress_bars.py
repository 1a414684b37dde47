"""Progress, with and without a terminal."""

import time
from io import StringIO

import pytest
from rich.console import Console

from deployments.cli._support.progress_bars import stage_progress
from metric_core.stages import Stage
from tasks.runtime.activity import ServerActivity
from tasks.runtime.progress import advance


def test_stage_prints_its_start_and_its_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter((0.0, 1.0, 20.0, 21.0))
    monkeypatch.setattr("deployments.cli._support.progress_bars.monotonic", lambda: next(seconds))
    with stage_progress([Stage.VERDICTS]):
        advance(Stage.VERDICTS, 0, 4000)
        advance(Stage.VERDICTS, 100)
        advance(Stage.VERDICTS, 900)
        advance(Stage.VERDICTS, 10)
    assert capsys.readouterr().err.splitlines() == ["verdicts", "verdicts: 1,000 of 4,000, 50.0/s, 60 s left"]


def test_rate_is_not_shown_for_the_first_units(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter((0.0, 16.0))
    monkeypatch.setattr("deployments.cli._support.progress_bars.monotonic", lambda: next(seconds))
    with stage_progress([Stage.QUESTIONS]):
        advance(Stage.QUESTIONS, 0, 1350)
        advance(Stage.QUESTIONS, 1)
    assert capsys.readouterr().err.splitlines() == ["questions", "questions: 1 of 1,350"]


def test_a_run_that_waits_says_what_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("deployments.cli._support.progress_bars.QUIET_SECONDS", 0.01)
    activity = ServerActivity("http://gpu1/v1")
    activity.start_request()
    with stage_progress([Stage.CLAIMS]):
        time.sleep(0.2)
    assert "http://gpu1/v1: waiting for 1 reply, 0 s so far" in capsys.readouterr().err


def test_bars_have_a_line_about_the_server_below(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr(
        "deployments.cli._support.progress_bars.stderr", Console(file=screen, force_terminal=True, width=120)
    )
    activity = ServerActivity("http://gpu1/v1")
    activity.count_cut_off(412)
    with stage_progress([Stage.CLAIMS]):
        advance(Stage.CLAIMS, 0, 10)
    assert "http://gpu1/v1: 1 reply cut off at 412 tokens" in screen.getvalue()
