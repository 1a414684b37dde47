"""Progress if stderr is not a terminal."""

import pytest

from deployments.cli._support.progress_bars import stage_progress
from metric_core.stages import Stage
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
