"""The stage `questions`: regenerated from responses that say something."""

from pathlib import Path

from metric_core import reasons
from metric_core.stages import Stage
from tasks.stages.questions import QuestionsSettings, questions
from tests.tasks.builders import cells, fails, run_stage, samples_table, says, script


def test_each_outcome_has_its_row(tmp_path: Path) -> None:
    two = {"questions": [{"question": "Why?", "noncommittal": False}, {"question": "Who?", "noncommittal": True}]}
    judge = script(
        tmp_path,
        says("questions", "Because.", answer=two),
        says("questions", "Hm.", answer={"questions": []}),
        fails("questions", "Long.", reason="cut off"),
    )
    table = samples_table({"response": "Because."}, {"response": "Hm."}, {"response": "Long."}, {"response": ""})
    output = run_stage(questions, {Stage.SAMPLES: table}, QuestionsSettings(count=2, judge=judge))
    assert cells(output.table, "row_id", "k", "text", "noncommittal", "status", "reason") == [
        ("row-1", 0, "Why?", False, "answered", None),
        ("row-1", 1, "Who?", True, "answered", None),
        ("row-2", None, None, None, "undefined", reasons.NO_QUESTIONS),
        ("row-3", None, None, None, "failed", "cut off"),
        ("row-4", None, None, None, "undefined", reasons.empty_column("response")),
    ]
