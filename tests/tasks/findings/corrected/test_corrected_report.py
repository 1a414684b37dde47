"""Bias-corrected means in the report of a run."""

import json
from pathlib import Path

from tasks.reports.run.report_page import write_report
from tests.tasks.reports import folders
from tests.tasks.reports.parsed_page import Page


def test_the_bias_corrected_mean_stands_below_the_mean(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", 4)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    entry = {"label": "good", "span": None, "value": 0.7, "low": 0.6, "high": 0.8}
    entry |= {"method": "judge error", "reason": "", "labelled": None, "rows": 4}
    changed = json.dumps({**summary, "bias_corrected": {"faithfulness": entry}})
    (folder / "summary.json").write_text(changed, encoding="utf-8")
    text = Page(write_report(folder).read_text(encoding="utf-8")).text
    assert "Bias-corrected mean ('good') 70.0 % 60.0 to 80.0" in text
    assert "A bias-corrected mean estimates the mean that labels by people would have" in text
