"""Metrics find the planted faults of the example data: worse answers score lower than their good partners."""

import json
from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq
import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from tests.prefect_stub import use_stub

pytestmark = [pytest.mark.models, pytest.mark.prefect]

EXAMPLE = Path(__file__).parents[2] / "examples" / "handbook.jsonl"
ROWS = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], float]:
    """Return the scores of the built-in judge by row id and metric."""
    folder = tmp_path_factory.mktemp("ordering")
    with use_stub():
        run = Path(run_evaluation(RunConfig(source=str(EXAMPLE), out=str(folder / "run"))).folder)
    cells = pq.read_table(run / "scores.parquet").to_pylist()
    return {(cell["row_id"], cell["metric"]): cell["value"] for cell in cells if cell["value"] is not None}


def partners(planted: str) -> list[tuple[str, str]]:
    """Return pairs of ids: a planted row, and the good answer to the same question."""
    good = {row["pair"]: row["id"] for row in reversed(ROWS) if row["planted"] == "good"}
    return [(row["id"], good[row["pair"]]) for row in ROWS if row["planted"] == planted]


@pytest.mark.parametrize(
    ("planted", "metric"),
    [
        ("unsupported", "faithfulness"),
        ("off_topic", "answer_relevancy"),
        ("unsupported", "answer_correctness"),
        ("off_topic", "factual_correctness"),
    ],
)
def test_every_planted_answer_scores_lower_than_its_good_partner(
    scores: dict[tuple[str, str], float], planted: str, metric: str
) -> None:
    pairs = partners(planted)
    assert len(pairs) >= 3
    for bad, good in pairs:
        assert scores[bad, metric] < scores[good, metric], (bad, good)


@pytest.mark.parametrize(
    ("planted", "metric"),
    [("partly_wrong", "faithfulness"), ("partly_wrong", "factual_correctness"), ("shuffled", "context_precision")],
)
def test_answers_with_a_smaller_flaw_score_lower_on_average(
    scores: dict[tuple[str, str], float], planted: str, metric: str
) -> None:
    pairs = partners(planted)
    assert fmean(scores[bad, metric] for bad, _ in pairs) < fmean(scores[good, metric] for _, good in pairs)


def test_answers_that_follow_a_misleading_passage_are_more_sensitive_to_noise_on_average(
    scores: dict[tuple[str, str], float],
) -> None:
    # With probabilities, one of the two is the other way round.
    pairs, metric = partners("noise"), "noise_sensitivity"
    assert fmean(scores[bad, metric] for bad, _ in pairs) > fmean(scores[good, metric] for _, good in pairs)
