"""The panel of judges in the report of a run."""

import json
from pathlib import Path
from typing import Any

from tests.tasks.findings.judge.judge_page import text_on_judge
from tests.tasks.reports import folders


def test_panel_is_shown_with_its_agreement(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["panel"] = [manifest["judge"], manifest["judge"] | {"model": folders.ATTACK}]
    folders.write_json(folder / "run.json", manifest)
    summary = json.loads((folder / "summary.json").read_text())
    numbers: dict[str, Any] = {"agreement": 0.75, "alpha": 0.5, "compared": 1000, "items": 1200}
    numbers |= {"complete": 1000, "kappa": 0.5, "unlabelled": {}}
    summary["agreement"] = {"verdicts": {"support": numbers | {"judges": ["a", "b"]}}}
    folders.write_json(folder / "summary.json", summary)
    text = text_on_judge(folder)
    assert "Panel of judges" in text
    assert "support75 % of pairs of labels equal, Krippendorff's alpha 0.50 (1,000 of 1,200 items)" in text
