"""The stage `aggregation`: from stage tables to cells that hold a value or say why not."""

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from metric_core import reasons
from metric_core.calibration.platt import ProbabilityMap
from metric_core.metrics.registry import parse_request
from metric_core.stages import Stage
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table
from tasks.stages.aggregation import AggregationSettings, aggregation
from tests.tasks.builders import run_stage, samples_table

CLAIM = {"row_id": "row-1", "side": "response", "claim_id": "response:0", "text": "It rains.", "status": "answered"}
VERDICT = {
    "row_id": "row-1",
    "kind": "support",
    "claim_id": "response:0",
    "premise": "contexts",
    "verdict": 1,
    "probability": 0.75,
    "status": "answered",
}
SAMPLE = {"response": "It rains.", "retrieved_contexts": ["Rain."]}


def score(metric: str, tables: Mapping[Stage, pa.Table], verdict: str = "binary") -> tuple[Any, ...]:
    settings = AggregationSettings.model_validate(
        {"metrics": (MetricSettings.from_request(parse_request(metric)),), "verdict": verdict}
    )
    (row,) = run_stage(aggregation, tables, settings).table.to_pylist()
    return row["value"], row["status"], row["reason"]


def tables(claim: Mapping[str, Any] = CLAIM, verdict: Mapping[str, Any] = VERDICT) -> dict[Stage, pa.Table]:
    return {
        Stage.SAMPLES: samples_table(SAMPLE),
        Stage.CLAIMS: build_table(Stage.CLAIMS, [claim]),
        Stage.VERDICTS: build_table(Stage.VERDICTS, [verdict]),
    }


def test_a_verdict_counts_as_one_or_as_its_probability() -> None:
    assert score("faithfulness", tables()) == (1.0, "scored", None)
    assert score("faithfulness", tables(), verdict="probability") == (0.75, "scored", None)


def test_a_failed_decomposition_fails_the_score_with_its_reason() -> None:
    failed = {"row_id": "row-1", "side": "response", "status": "failed", "reason": "the reply was cut off"}
    assert score("faithfulness", tables(claim=failed)) == (None, "failed", "the reply was cut off")


def test_unsupported_decomposition_leaves_the_score_undefined() -> None:
    missing = {"row_id": "row-1", "side": "response", "status": "undefined", "reason": reasons.NEEDS_LANGUAGE_MODEL}
    assert score("faithfulness", tables(claim=missing)) == (None, "undefined", reasons.NEEDS_LANGUAGE_MODEL)


def test_a_text_without_claims_leaves_the_score_undefined() -> None:
    nothing = {"row_id": "row-1", "side": "response", "status": "undefined", "reason": reasons.NO_RESPONSE_CLAIMS}
    assert score("faithfulness", tables(claim=nothing)) == (None, "undefined", reasons.NO_RESPONSE_CLAIMS)


def test_a_failed_verdict_fails_the_score() -> None:
    failed = {**VERDICT, "verdict": None, "probability": None, "status": "failed", "reason": "cut off"}
    assert score("faithfulness", tables(verdict=failed))[1] == "failed"


def test_ratings_are_read_by_metric() -> None:
    ratings = [
        {
            "row_id": "row-1",
            "metric": "nv_accuracy",
            "template": template,
            "vote": 0,
            "value": value,
            "status": "answered",
        }
        for template, value in (("1", "4"), ("2", "2"))
    ]
    sample = samples_table({"user_input": "Q?", "response": "A.", "reference": "R."})
    found = score("nv_accuracy", {Stage.SAMPLES: sample, Stage.RATINGS: build_table(Stage.RATINGS, ratings)})
    assert found == (0.75, "scored", None)


def test_a_rating_that_needs_a_language_model_is_undefined() -> None:
    rating = {
        "row_id": "row-1",
        "metric": "nv_accuracy",
        "template": "1",
        "vote": 0,
        "status": "undefined",
        "reason": reasons.NEEDS_LANGUAGE_MODEL,
    }
    sample = samples_table({"user_input": "Q?", "response": "A.", "reference": "R."})
    found = score("nv_accuracy", {Stage.SAMPLES: sample, Stage.RATINGS: build_table(Stage.RATINGS, [rating])})
    assert found == (None, "undefined", reasons.NEEDS_LANGUAGE_MODEL)


def test_entities_of_all_passages_are_one_set() -> None:
    entities: list[dict[str, Any]] = [
        {"row_id": "row-1", "side": "reference", "text": "Dublin", "label": "GPE", "status": "answered"},
        {"row_id": "row-1", "side": "reference", "text": "Leipzig", "label": "GPE", "status": "answered"},
        {"row_id": "row-1", "side": "context", "passage": 1, "text": "dublin", "label": "GPE", "status": "answered"},
    ]
    sample = samples_table({"reference": "Dublin, Leipzig", "retrieved_contexts": ["a", "dublin"]})
    given = {Stage.SAMPLES: sample, Stage.ENTITIES: build_table(Stage.ENTITIES, entities)}
    assert score("context_entity_recall", given)[0] == 0.5
    assert score("context_entity_recall(match=exact)", given)[0] == 0


def test_cosines_stay_with_their_questions() -> None:
    questions: list[dict[str, Any]] = [
        {"row_id": "row-1", "k": 0, "text": " ", "noncommittal": False, "status": "answered"},
        {"row_id": "row-1", "k": 1, "text": "Why?", "noncommittal": False, "status": "answered"},
    ]
    cosine = {"row_id": "row-1", "pair": "question", "k": 1, "cosine": 0.5, "status": "answered"}
    given = {
        Stage.SAMPLES: samples_table({"user_input": "Why?", "response": "Because."}),
        Stage.QUESTIONS: build_table(Stage.QUESTIONS, questions),
        Stage.SIMILARITY: build_table(Stage.SIMILARITY, [cosine]),
    }
    assert score("answer_relevancy", given) == (0.5, "scored", None)


def test_a_zero_vector_is_a_reason() -> None:
    similarity = {"row_id": "row-1", "pair": "answer", "k": 0, "status": "undefined", "reason": reasons.ZERO_VECTOR}
    given = {
        Stage.SAMPLES: samples_table({"response": "A.", "reference": "R."}),
        Stage.SIMILARITY: build_table(Stage.SIMILARITY, [similarity]),
    }
    assert score("answer_similarity", given) == (None, "undefined", reasons.ZERO_VECTOR)


def test_map_changes_only_probabilities_of_the_judge() -> None:
    metrics = tuple(
        MetricSettings.from_request(parse_request(name)) for name in ("faithfulness", "factual_correctness")
    )
    second = {**CLAIM, "claim_id": "response:1"}
    known = {**VERDICT, "claim_id": "response:1", "verdict": 0, "probability": 0.0, "reason": "empty premise"}
    given = tables()
    given[Stage.CLAIMS] = build_table(Stage.CLAIMS, [CLAIM, second])
    given[Stage.VERDICTS] = build_table(Stage.VERDICTS, [VERDICT, known])
    maps = {"faithfulness": ProbabilityMap(1.0, -math.log(3))}  # 0.75 has the odds 3 : 1
    settings = AggregationSettings.model_validate({"metrics": metrics, "verdict": "probability", "maps": maps})
    mapped, _ = run_stage(aggregation, given, settings).table.to_pylist()
    plain, _ = run_stage(aggregation, given, settings.model_copy(update={"maps": {}})).table.to_pylist()
    assert (plain["value"], mapped["value"]) == pytest.approx((0.375, 0.25))


@pytest.mark.parametrize(("pair", "metric"), [("answer", "answer_similarity"), ("question", "answer_relevancy")])
def test_missing_vector_fails_the_score(pair: str, metric: str) -> None:
    failed = {"row_id": "row-1", "pair": pair, "k": 0, "status": "failed", "reason": reasons.NO_USABLE_VECTOR}
    question = {"row_id": "row-1", "k": 0, "text": "Why?", "noncommittal": False, "status": "answered"}
    given = {
        Stage.SAMPLES: samples_table({"user_input": "Q?", "response": "A.", "reference": "R."}),
        Stage.QUESTIONS: build_table(Stage.QUESTIONS, [question]),
        Stage.SIMILARITY: build_table(Stage.SIMILARITY, [failed]),
    }
    assert score(metric, given) == (None, "failed", reasons.NO_USABLE_VECTOR)


UNABLE = {"verdict": None, "probability": None, "status": "undefined", "reason": reasons.NEEDS_LANGUAGE_MODEL}


def test_unsupported_verdict_leaves_its_scores_undefined() -> None:
    given = tables(verdict={**VERDICT, **UNABLE})
    by_reference = {**VERDICT, "premise": "reference"}
    given[Stage.VERDICTS] = build_table(Stage.VERDICTS, [{**VERDICT, **UNABLE}, by_reference])
    given[Stage.SAMPLES] = samples_table({**SAMPLE, "reference": "It rains."})
    assert score("faithfulness", given) == (None, "undefined", reasons.NEEDS_LANGUAGE_MODEL)
    assert score("factual_correctness(mode=precision)", given) == (1.0, "scored", None)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("usefulness_for_reference", "context_precision"), ("usefulness_for_response", "context_utilization")],
)
def test_unsupported_usefulness_leaves_the_score_undefined(kind: str, metric: str) -> None:
    verdict = {**VERDICT, **UNABLE, "kind": kind, "claim_id": "", "premise": "context:0"}
    given = tables(verdict=verdict)
    given[Stage.SAMPLES] = samples_table({**SAMPLE, "user_input": "Q?", "reference": "It rains."})
    assert score(metric, given) == (None, "undefined", reasons.NEEDS_LANGUAGE_MODEL)


def test_reason_of_an_unsupported_question_may_be_the_judge_s() -> None:
    why = "asked about claims alone"
    claim = {"row_id": "row-1", "side": "response", "status": "undefined", "reason": why}
    rating = {**claim, "metric": "rubrics", "template": "1", "vote": 0}
    given = tables(claim=claim)
    given[Stage.RATINGS] = build_table(Stage.RATINGS, [{name: rating[name] for name in rating if name != "side"}])
    given[Stage.SAMPLES] = samples_table({**SAMPLE, "reference": "It rains."})
    for metric in ("faithfulness", "factual_correctness", "rubrics"):
        assert score(metric, given) == (None, "undefined", why), metric


def test_settings_with_maps_can_be_read_from_what_is_written() -> None:
    settings = AggregationSettings(metrics=(), maps={"m": ProbabilityMap(0.5, 0.1)})
    assert AggregationSettings.model_validate(settings.model_dump(mode="json")) == settings
