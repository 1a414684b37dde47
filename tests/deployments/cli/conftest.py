"""Calls the command line in this process, as the console script would."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from deployments.cli.main import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call of the command: exit code and both streams."""

    code: int
    out: str
    err: str


@pytest.fixture
def assay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Call `assay` with arguments."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["assay", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
