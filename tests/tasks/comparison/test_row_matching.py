"""Rows whose ids are digests of their content are matched by their questions, if these identify them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from metric_core.records import Score
from metric_core.stages import Stage
from tasks.comparison.row_matching import match_by_questions
from tasks.comparison.run_pair import Matching
from tasks.sources.row_ids import sample_digest
from tests.tasks import compared
from tests.tasks.reports import folders

BEFORE = {"Where?": "In Delft.", "When?": "At nine."}
AFTER = {"Where?": "In Delft.", "When?": "At ten."}


def write_run(folder: Path, answers: Mapping[str, str], prefix: str = "") -> Path:
    """Write a run of answers whose ids are digests of their content, after a prefix."""
    rows = [{"user_input": question.strip(), "response": answer} for question, answer in answers.items()]
    samples = [{"row_id": prefix + sample_digest(row), "row_number": 1, **row} for row in rows]
    scores = {str(sample["row_id"]): {"faithfulness": Score.scored(0.5)} for sample in samples}
    metrics = {"faithfulness": compared.METRICS["faithfulness"]}
    return folders.write_run(folder, scores, {Stage.SAMPLES: samples}, metrics, {"status": "completed"})


def test_a_changed_answer_is_found_by_its_question(tmp_path: Path) -> None:
    folders_of_runs = write_run(tmp_path / "a", BEFORE), write_run(tmp_path / "b", AFTER)
    assert match_by_questions(Matching(by="topic"), *folders_of_runs) == Matching("user_input", by="topic")


@pytest.mark.parametrize("named", ["id", "topic"])
def test_a_column_that_is_named_stays(tmp_path: Path, named: str) -> None:
    folders_of_runs = write_run(tmp_path / "a", BEFORE), write_run(tmp_path / "b", AFTER)
    assert match_by_questions(Matching(named), *folders_of_runs) == Matching(named)


@pytest.mark.parametrize(
    ("before", "after", "prefix"),
    [
        (BEFORE, BEFORE, ""),
        (BEFORE, AFTER, "own-"),
        (BEFORE, {"Where?": "In Delft.", "Where? ": "At ten."}, ""),
        (BEFORE, {"Where?": "In Delft.", "": "At ten."}, ""),
    ],
    ids=["equal rows", "ids of their own", "a question asked twice", "an empty question"],
)
def test_other_rows_are_matched_by_their_ids(
    tmp_path: Path, before: Mapping[str, str], after: Mapping[str, str], prefix: str
) -> None:
    folders_of_runs = write_run(tmp_path / "a", before, prefix), write_run(tmp_path / "b", after, prefix)
    assert match_by_questions(Matching(), *folders_of_runs) == Matching()


def test_a_run_without_a_baseline_is_matched_with_none(tmp_path: Path) -> None:
    assert match_by_questions(Matching(), None, write_run(tmp_path / "b", AFTER)) == Matching()
