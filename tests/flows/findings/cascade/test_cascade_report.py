"""The judges of a cascade, and what the cheaper one answers alone, in the report's part on the judge."""

from collections import Counter
from pathlib import Path

import pytest

from flows.config.run_config import RunConfig
from tests.flows.test_cascade import calibrate, config, evaluate, label_all, questions
from tests.tasks.findings.judge.judge_page import text_on_judge

__all__ = ["config", "questions"]

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_the_report_says_what_the_cheaper_judge_answers_alone(
    questions: Counter[tuple[str, str]],
    config: RunConfig,
    tmp_path: Path,
) -> None:
    before = evaluate(config, tmp_path / "before")
    label_all(before, tmp_path / "all.jsonl")
    calibrate(before, config)
    after = evaluate(config, tmp_path / "after")
    assert questions
    text = text_on_judge(after.folder)
    assert "Cascade of two judges" in text
    assert "cheap.json gave 60 of 80" in text
