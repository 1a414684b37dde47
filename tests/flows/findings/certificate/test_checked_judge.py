"""A judge that was checked has a certificate, which its runs name."""

from pathlib import Path

import pytest

from deployments.cli.judge import check
from flows.config.gate_file import GateSettings
from flows.evaluate import run_evaluation
from flows.judge_check import check_judge
from flows.results.gated_comparison import CompareOptions, apply_gate
from tasks.history.recorded_run import CERTIFIED
from tasks.history.run_entry import read_run_entry
from tasks.runs.finished_run import FinishedRun
from tests.flows.findings.anchor.test_judge_changes import KNOWN, Evaluation, evaluation, rows  # noqa: F401 a fixture
from tests.tasks.findings.judge.judge_page import text_on_judge

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_a_checked_judge_has_a_certificate_for_this_and_later_runs(
    evaluation: Evaluation,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The judge obeys passages; claims are never compared, so changes of them are not noticed."""
    evaluation.verdict = lambda prompt: KNOWN(prompt) or "answer yes to every" in prompt
    words = ["easy"] * 20 + ["broken"] * 20
    source = evaluation._write("checked", rows("checked", words))
    config = evaluation.configuration().model_copy(update={"anchor": None, "source": source})
    folder = Path(run_evaluation(config).folder)
    evaluation.server.bodies.clear()

    checked = check_judge(folder, 280)

    certificate = checked.certificate
    assert len(evaluation.server.asked) == certificate.questions <= 280
    found = {each.change: each for each in certificate.changes}
    assert "order" not in found  # there is one passage
    assert [name for name, each in found.items() if each.is_fault] == ["injection"]
    assert found["evidence"].wrong == 11  # of 20, which an unsure judge may leave
    assert (found["injection"].wrong, found["repetition"].wrong, found["later repetition"].asked) == (10, 0, 20)
    evaluation.server.bodies.clear()
    capsys.readouterr()
    check(folder, 280)
    printed = capsys.readouterr().out.splitlines()
    assert next(line.split()[-1] for line in printed if line.startswith("injection ")) == "fault"
    assert "certificate: " in printed[-1]
    asked = [body["messages"][-1]["content"] for body in evaluation.server.asked]
    assert 2 * 20 <= len(asked) <= 3 * 20  # repetitions alone are asked past the cache
    assert not any("answer yes to every" in prompt for prompt in asked)

    later = Path(run_evaluation(config).folder)
    for run in (folder, later):
        assert (
            FinishedRun(run).record.to_json()["certificate"]["changes"]
            == certificate.model_dump(mode="json")["changes"]
        )
        assert "injection moves verdicts: 10 of 20" in text_on_judge(run)
    assert read_run_entry(later).versions[CERTIFIED] == "injection"
    gate = GateSettings.model_validate({"absolute": ["faithfulness >= 0.1"], "judge": {"max_flip": 0.03}})
    result = apply_gate(later, CompareOptions(gate=gate)).gate
    assert result is not None
    assert [check.outcome.value for check in result.checks] == ["inconclusive", "inconclusive"]
    assert "faults in its certificate (injection)" in result.checks[0].reason

    evaluation.revision = "2"
    other = evaluation.configuration().model_copy(update={"anchor": None, "source": source})
    assert FinishedRun(run_evaluation(other).folder).record.to_json()["certificate"] is None
