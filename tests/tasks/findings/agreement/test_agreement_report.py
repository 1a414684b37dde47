"""The agreement of the judge with people in the report of a run."""

import json
from pathlib import Path

from tests.tasks.findings.judge.judge_page import text_on_judge
from tests.tasks.reports import folders


def test_agreement_of_the_judge_with_people_is_shown(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["judge"] |= {"backend": "server"}
    folders.write_json(folder / "run.json", manifest)
    assert "not calibrated: how far" in text_on_judge(folder)
    facts = {
        "created": "2026-11-21T16:04:00+00:00",
        "source": folders.ATTACK,
        "label": "faithful",
        "compared": 200,
        "figures": {"kappa": {"value": 0.61234, "low": 0.5, "high": 0.7}, "auroc": {"value": 0.9}},
        "applied": True,
    }
    note = "the calibration of nv_accuracy of 2026-11-20 does not hold here: it is of other prompts"
    manifest["calibration"] = {"metrics": {"faithfulness": facts}, "not_covered": [note]}
    folders.write_json(folder / "run.json", manifest)
    text = text_on_judge(folder)
    assert "not calibrated: how far" not in text
    assert "faithfulness: kappa 0.612 (0.500 to 0.700), AUROC 0.900 (no interval: too few rows or" in text
    assert "2026-11-21, probabilities mapped by it" in text
    assert note in text
