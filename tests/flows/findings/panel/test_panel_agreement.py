"""The agreement of the judges of a panel in the summary of a run."""

from pathlib import Path

import pytest

from tasks.findings.panel.panel_finding import PanelAgreement, agreement_line
from tasks.record.run_summary import RunSummary
from tests.flows.test_judging import CLAIMS, evaluate, judge_of, read
from tests.tasks.builders import says

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_the_judges_of_a_panel_agree_as_often_as_their_labels_are_equal(tmp_path: Path) -> None:
    third = "Repairs 2 happen in Dublin."
    lead = judge_of(tmp_path / "lead", CLAIMS, says("verdict", answer="yes"), says("verdict", third, answer="no"))
    other = judge_of(tmp_path / "other", says("verdict", answer={"yes": 0.75, "no": 0.25}))
    summary = read(evaluate(tmp_path / "panel", judge=lead, panel=[other]), "summary.json")
    support = summary["agreement"]["verdicts"]["support"]
    assert (support["items"], support["compared"], support["agreement"]) == (4, 4, 0.75)
    # Chance, without replacement: 2 * 7 * 1 of 8 * 7 pairs of labels differ.
    assert support["alpha"] == pytest.approx(1 - 0.25 / 0.25)
    agreement = RunSummary.model_validate(summary).find_all(PanelAgreement)
    assert agreement_line(agreement) == "agreement of 2 judges: support 0.75 (alpha 0.00, 4 answers)"


def test_single_judge_has_no_agreement(tmp_path: Path) -> None:
    run = evaluate(tmp_path / "one", judge=judge_of(tmp_path / "j", CLAIMS, says("verdict", answer="yes")))
    assert "agreement" not in read(run, "summary.json")
