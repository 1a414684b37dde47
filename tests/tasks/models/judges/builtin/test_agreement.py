"""Tests of agreement with people on data not used for fitting; skipped without the data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from metric_core.prompts.judge_questions import ask_key_point, ask_questions, ask_verdict
from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.builtin.builtin_judge import BuiltinJudge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

pytestmark = pytest.mark.models

DATA = Path(__file__).resolve().parents[6] / "shared" / "meta_eval"


def rows(name: str, step: int) -> list[dict[str, Any]]:
    """Return every `step`-th row of a file, whose rows are ordered by system."""
    path = DATA / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"{path} does not exist")
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found[::step]


@pytest.fixture(scope="module")
def judge() -> BuiltinJudge:
    return BuiltinJudge(MiniLm(), SpacyPipeline())


def auroc(labels: Sequence[bool], values: Sequence[float]) -> float:
    """Return the share of yes-no pairs in which yes has the greater value; ties count half."""
    yes = np.array([value for label, value in zip(labels, values, strict=True) if label])
    no = np.array([value for label, value in zip(labels, values, strict=True) if not label])
    difference = yes[:, None] - no[None, :]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def test_auroc_of_a_perfect_and_a_useless_value() -> None:
    assert auroc([True, False], [0.9, 0.1]) == 1.0
    assert auroc([True, False], [0.5, 0.5]) == 0.5


@pytest.mark.simulation
def test_verdicts_on_atomic_facts(judge: BuiltinJudge) -> None:
    facts = [(row, fact) for row in rows("claims_factscore", 32) for fact in row["label_claims"]]
    asked = [ask_verdict(fact["claim"], "\n".join(row["retrieved_contexts"])) for row, fact in facts]
    values = [(answer.probabilities or {})["yes"] for answer in judge.choose(asked)]
    assert auroc([fact["supported"] for _, fact in facts], values) > 0.8


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("file", "label", "yes", "least"),
    [
        (("nuggets_qampari", 3), "label_assignment", "support", 0.9),
        (("nuggets_ikat24", 1), "label_captured", 1, 0.75),
    ],
)
def test_key_points_in_answers(
    judge: BuiltinJudge, file: tuple[str, int], label: str, yes: str | int, least: float
) -> None:
    found = rows(*file)
    answers = judge.choose([ask_key_point(row["nugget"], row["response"]) for row in found])
    values = [(answer.probabilities or {})["yes"] for answer in answers]
    assert auroc([row[label] == yes for row in found], values) > least


@pytest.mark.simulation
def test_regenerated_questions_separate_relevant_from_irrelevant_answers(judge: BuiltinJudge) -> None:
    found = rows("answer_relevancy_clapnq", 5)
    replies = [
        reply.value["questions"] for reply in judge.generate([ask_questions(row["response"], 3) for row in found])
    ]
    embedder = MiniLm()
    asked = embedder.embed([row["user_input"] for row in found])
    values = [
        0.0
        if all(question["noncommittal"] for question in questions)
        else float((embedder.embed([question["question"] for question in questions]) @ vector).mean())
        for questions, vector in zip(replies, asked, strict=True)
    ]
    assert auroc([row["label_relevant"] for row in found], values) > 0.95
