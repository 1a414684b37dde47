"""A second judge is asked about the rows on which the outcomes of a run hang, and the comparison says what it says."""

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from flows.config.gate_file import GateSettings
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from metric_core.errors import JudgeError
from tasks.comparison.run_comparison import RunComparison, comparison_to_dict
from tasks.findings.robustness.robustness_finding import gate_sentences, metric_sentences
from tasks.findings.robustness.second_judge_record import SecondJudgeRecord
from tasks.models.judges.scripted import ScriptedJudge
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.runs.finished_run import FinishedRun
from tests.tasks.builders import says

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

ROWS, POOR, MOST = 120, 20, 12
"""The first judge calls the first rows of the second run bad; a second judge may be asked about a tenth of all."""
FIRST, SECOND = "first.json", "second.json"


class Nights:
    """Runs of a system that answers every row in new words, judged by two scripted judges."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: Counter[str] = Counter()

    def write_judge(self, name: str, refused: Collection[int], silent: Collection[int] = ()) -> dict[str, str]:
        """Write the answers of a judge, and return its settings.

        Args:
            refused: Rows whose new claims it does not support.
            silent: Rows about whose new claims it says nothing.
        """
        written, verdicts = [], []
        for night in ("old", "new"):
            for row in range(ROWS):
                claim = f"It is in the {night} hall {row}."
                written.append(says("claims", f"In {night} hall {row}.", answer={"claims": [claim]}))
                is_refused = night == "new" and row in refused
                if night == "old" or row not in silent:
                    verdicts.append(says("verdict", claim, answer="no" if is_refused else "yes"))
        (self.folder / name).write_text(json.dumps([*verdicts, *written]), encoding="utf-8")
        return {"backend": "scripted", "script": str(self.folder / name)}

    def run(self, night: str, **options: Any) -> FinishedRun:
        """Evaluate the answers of a night."""
        source = self.folder / f"{night}.jsonl"
        lines = [
            {
                "id": f"r{row:03}",
                "user_input": "Where?",
                "response": f"In {night} hall {row}.",
                "retrieved_contexts": [f"Text {row}."],
            }
            for row in range(ROWS)
        ]
        source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        config = {
            "source": str(source),
            "metrics": ("faithfulness",),
            "judge": self.write_judge(FIRST, range(POOR)),
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
            "out": str(self.folder / f"{night}-{len([*self.folder.iterdir()])}"),
        }
        self.asked.clear()
        return FinishedRun(run_evaluation(RunConfig.model_validate(config | options)).folder)


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    found = Nights(tmp_path)
    plain = ScriptedJudge.choose

    def choose(judge: ScriptedJudge, questions: Any, on_answer: Any = None) -> Any:
        found.asked[judge.identity.model] += len(questions)
        return plain(judge, questions, on_answer)

    monkeypatch.setattr(ScriptedJudge, "choose", choose)
    return found


def record_of(run: FinishedRun) -> SecondJudgeRecord:
    found = run.record.find(SecondJudgeRecord)
    assert found is not None
    return found


def sentences(before: FinishedRun, after: FinishedRun) -> list[str]:
    return [*metric_sentences(compare(before, after))]


def compare(before: FinishedRun, after: FinishedRun) -> RunComparison:
    return compare_runs(before.folder, after.folder, CompareOptions())


def test_a_second_judge_that_agrees_leaves_the_outcome_as_it_is(nights: Nights) -> None:
    baseline = nights.run("old")
    second = nights.write_judge(SECOND, range(POOR))
    run = nights.run("new", baseline=str(baseline.folder), second_judge=second)
    record = record_of(run)
    assert (record.judge, record.rows, record.questions) == (SECOND, MOST, 2 * MOST)
    assert nights.asked[SECOND] == 2 * MOST
    assert run.means()["faithfulness"] == pytest.approx(1 - POOR / ROWS), "the scores are those of the judge"

    outcome, asked = sentences(baseline, run)
    assert outcome == (
        "faithfulness (worse): robust: the same without any 3 rows, and with the verdicts of second.json on 12 rows; "
        "the judge was not asked again"
    )
    assert asked == "the second judge second.json was asked 24 questions about 12 of 120 rows"
    for text in (comparison_markdown(compare(baseline, run)), comparison_page(compare(baseline, run))):
        assert "with the verdicts of second.json on 12 rows" in text

    again = record_of(nights.run("new", baseline=str(baseline.folder), second_judge=second))
    assert (again.questions, again.stored, nights.asked[SECOND]) == (0, 2 * MOST, 0), "its answers are cached"
    assert again.after == record.after


def test_an_outcome_that_a_second_judge_does_not_share_hangs_on_the_judge(nights: Nights) -> None:
    baseline = nights.run("old")
    run = nights.run("new", baseline=str(baseline.folder), second_judge=nights.write_judge(SECOND, ()))
    compared = compare(baseline, run)
    assert next(metric_sentences(compared)) == (
        "faithfulness (worse): hangs on the judge: with the verdicts of second.json on 12 rows the outcome is another"
    )
    found = comparison_to_dict(compared)["robustness"]
    assert found["metrics"][0]["second"] == {"judge": SECOND, "rows": MOST, "lost": 0, "is_other": True}
    assert found["second_judge"] == "the second judge second.json was asked 24 questions about 12 of 120 rows"


def test_rows_without_its_verdict_are_counted(nights: Nights) -> None:
    baseline = nights.run("old")
    second = nights.write_judge(SECOND, range(POOR), silent=range(0, POOR, 2))
    run = nights.run("new", baseline=str(baseline.folder), second_judge=second)
    found = comparison_to_dict(compare(baseline, run))["robustness"]["metrics"][0]["second"]
    assert 0 < found["lost"] < MOST
    assert found["rows"] + found["lost"] == MOST
    assert f"({found['lost']} more have none)" in sentences(baseline, run)[0]


def test_its_verdicts_are_about_the_baseline_of_the_run(nights: Nights) -> None:
    baseline, other = nights.run("old"), nights.run("old")
    run = nights.run("new", baseline=str(baseline.folder), second_judge=nights.write_judge(SECOND, ()))
    outcome, asked = sentences(other, run)
    assert "second.json" not in outcome
    none = "no verdicts of a second judge are stored for this comparison: the run was evaluated"
    assert asked == f"{none} with another baseline"
    alone = nights.run("new", second_judge=nights.write_judge(SECOND, ()))
    assert sentences(baseline, alone)[-1] == (
        "the second judge could not be asked: the run has neither a baseline nor a gate"
    )


def test_a_judge_that_cannot_be_asked_is_a_reason(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = nights.run("old")
    second = nights.write_judge(SECOND, ())
    plain = ScriptedJudge.choose

    def refuse(judge: ScriptedJudge, questions: Any, on_answer: Any = None) -> Any:
        if judge.identity.model == SECOND:
            raise JudgeError("the server is gone")
        return plain(judge, questions, on_answer)

    monkeypatch.setattr(ScriptedJudge, "choose", refuse)
    run = nights.run("new", baseline=str(baseline.folder), second_judge=second)
    assert sentences(baseline, run)[-1] == "the second judge could not be asked: the server is gone"


def test_nothing_is_asked_if_no_outcome_could_change(nights: Nights) -> None:
    gate = GateSettings.model_validate({"absolute": ["faithfulness >= 0.3"]})
    run = nights.run(
        "new", deploy={"gate": gate.model_dump(exclude_unset=True)}, second_judge=nights.write_judge(SECOND, ())
    )
    assert nights.asked[SECOND] == 0
    *_, asked = gate_sentences(apply_gate(run.folder, CompareOptions(gate=gate)))
    assert asked == "the second judge was not asked: a tenth of the rows could change no outcome"


def test_a_gate_near_its_threshold_hangs_on_a_judge_that_another_contradicts(nights: Nights) -> None:
    gate = GateSettings.model_validate({"absolute": ["faithfulness >= 0.75"]})
    second = nights.write_judge(SECOND, range(ROWS))
    run = nights.run("new", deploy={"gate": gate.model_dump(exclude_unset=True)}, second_judge=second)
    assert (record_of(run).rows, record_of(run).questions) == (MOST, MOST)
    outcome, _ = gate_sentences(apply_gate(run.folder, CompareOptions(gate=gate)))
    assert "hangs on the judge" in outcome
    assert "with the verdicts of second.json on 12 rows the outcome is another" in outcome


def test_the_judge_of_the_run_is_no_second_judge(nights: Nights) -> None:
    baseline = nights.run("old")
    same = nights.write_judge(FIRST, range(POOR))
    run = nights.run("new", baseline=str(baseline.folder), second_judge=same)
    assert sentences(baseline, run)[-1] == (
        "the second judge could not be asked: it is the judge of the run; name another one"
    )


def test_a_calibration_asks_no_second_judge() -> None:
    config = RunConfig.model_validate({"second_judge": "builtin"})
    assert config.second_judge is not None
    assert config.without_series().second_judge is None


def test_a_run_does_not_launch_its_second_judge() -> None:
    with pytest.raises(ValueError, match="start it with `assay judge start`"):
        RunConfig.model_validate({"second_judge": {"launch": {"python": "python3", "model": "judge"}}})
