"""Properties of the metrics, and the requests (parameters) that each metric is tested with.

A new metric joins `PARAMETERS` and every set whose property it has; a test fails while it is in none.
"""

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from metric_core.declarations.metric import MetricRequest
from metric_core.metrics.registry import METRICS

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "answer_relevancy": [{"strictness": 8}],  # all questions, however often they are repeated: none is a spare one
    "context_recall": [{"unit": "claim"}, {"unit": "sentence"}, {"of": "key_points"}],
    "key_point_recall": [{}, {"strict": False, "importance": "weighted"}, {"importance": "all"}],
    "non_llm_context_precision": [{}, {"threshold": 0.9, "distance": "jaro"}],
    "non_llm_context_recall": [{}, {"threshold": 0.0, "distance": "hamming"}],
    "context_entity_recall": [{}, {"match": "exact"}],
    "answer_similarity": [{}, {"threshold": 0.0}, {"encoder": "cross"}],
    "answer_correctness": [{}, {"weights": (1, 0)}, {"weights": (0, 2)}, {"weights": (1, 1), "beta": 2.0}],
    "factual_correctness": [
        *(
            {"mode": "f1", "beta": beta, "recall_basis": basis}
            for beta in (0, 0.5, 1.0)
            for basis in (None, "reference")
        ),
        {"mode": "precision"},
        {"mode": "recall"},
        {"mode": "recall", "recall_basis": "documented"},
    ],
    "ndcg": [{}, {"k": 2, "gain": "exponential"}, {"judgments": "judge"}, {"judgments": "both"}],
    "retrieval_recall": [{"k": 2}, {"min_grade": 2}, {"judgments": "judge"}],
    "retrieval_precision": [{}, {"k": 3}, {"k": 2, "judgments": "judge"}],
    "reciprocal_rank": [{}, {"min_grade": 2}, {"judgments": "both"}],
    "average_precision": [{}, {"k": 3}, {"judgments": "both", "min_grade": 2}],
    "hit_rate": [{"k": 1}, {"k": 1, "judgments": "judge"}],
    "judged_passages": [{}, {"k": 2}],
    **{
        name: [{"unit": "claim"}, {"unit": "sentence"}, {"unit": "claim", "partial": True}]
        for name in ("citation_precision", "citation_recall", "citation_f1", "misattributed_claims")
    },
    "uncited_claims": [{}, {"count": "supported"}, {"count": "unsupported", "unit": "sentence"}],
    "noise_sensitivity": [{"mode": "relevant"}, {"mode": "irrelevant"}],
    "aspect_critic": [{"definition": "Is it rude?"}, {"definition": "Is it rude?", "strictness": 4}],
    "discrete_criteria": [
        {"definition": "How clear is it?", "strictness": 3},
        {"definition": "How clear is it?", "allowed_values": [1, 2, 3]},
        {"prompt": "How clear is {response}?", "allowed_values": list(range(50)), "strictness": 2},
        {"definition": "Is it fine?", "allowed_values": ["pass", "fail"], "strictness": 3},
    ],
    "numeric_criteria": [{"definition": "How clear?"}, {"prompt": "Rate {response}", "allowed_values": (-1, 10)}],
    "rubrics": [{}, {"rubrics": {"score0_description": "no", "score0.5_description": "partly"}}],
    "figure": [{"column": "priority"}],
    "string_similarity": [{"distance": name} for name in ("levenshtein", "hamming", "jaro", "jaro_winkler")],
}
REQUESTS: dict[str, list[MetricRequest]] = {
    name: [metric.request(parameters) for parameters in PARAMETERS.get(name, [{}])] for name, metric in METRICS.items()
}

OF_ROOMS = METRICS.keys() & {point.name for point in entry_points(group="rag_assay.metrics")}
"""The metrics that come in by an entry point, and leave with their rooms."""

UNORDERED = OF_ROOMS | {
    "faithfulness", "answer_relevancy", "context_recall", "non_llm_context_recall", "id_context_precision",
    "id_context_recall", "context_relevancy", "context_entity_recall", "answer_correctness", "factual_correctness",
    "noise_sensitivity", "abstention_accuracy", "over_refusal", "key_point_recall", "key_point_precision",
}  # fmt: skip
"""The order of claims, sentences, questions, entities and reference contexts does not matter."""

RANK_FREE = UNORDERED
"""The ranks of the retrieved contexts do not matter."""

JUDGED_RANKINGS = {
    "ndcg", "retrieval_recall", "retrieval_precision", "reciprocal_rank", "average_precision", "hit_rate",
    "judged_passages",
}  # fmt: skip
"""Made of relevance judgments: no passage that is retrieved twice raises the score."""

RANKED = {"context_precision", "context_utilization", "non_llm_context_precision"} | JUDGED_RANKINGS
"""A relevant context further up never lowers the score."""

REPEATABLE = UNORDERED
"""Everything twice leaves the score (verdicts of 0 or 1)."""

SHARES = {
    "faithfulness", "context_recall", "context_relevancy", "answer_correctness", "factual_correctness",
    "key_point_recall", "key_point_precision",
}  # fmt: skip
"""One more supported claim never lowers the score, one more unsupported claim never raises it."""

VERDICTS = SHARES | {"context_precision", "context_utilization", "noise_sensitivity"}
"""Made of verdicts: a failed one never counts as a negative."""

RATINGS = {
    "nv_accuracy", "nv_context_relevance", "nv_response_groundedness", "aspect_critic", "discrete_criteria",
    "numeric_criteria", "rubrics", "instance_rubrics", "context_sufficiency",
}  # fmt: skip
"""Made of the judge's ratings: no usable rating, no score."""

SIMILARITIES = {"answer_relevancy", "answer_similarity", "answer_correctness"}
"""Undefined where a vector is zero."""

SYMMETRIC = {"string_similarity", "answer_similarity"}
"""Response and reference may change places."""

CITING = {
    "citation_precision", "citation_recall", "citation_f1", "misattributed_claims", "uncited_claims",
    "dangling_citations",
}  # fmt: skip
"""Made of citation markers and of the verdicts by the passages that they name: see `test_citations.py`."""

EMPTY_SCORES = {
    "context_relevancy": 0.0,
    "nv_context_relevance": 0.0,
    "context_sufficiency": 0.0,
    "nv_response_groundedness": 0.0,
    "string_similarity": 1.0,
    **dict.fromkeys(("latency", "tokens", "cost", "figure", "retrieved"), 0.0),
}
"""The documented scores of a row in which everything is empty; all others have none."""

SETS = (UNORDERED, JUDGED_RANKINGS, RANKED, SHARES, VERDICTS, RATINGS, SIMILARITIES, SYMMETRIC, CITING)


def requests_of(names: Iterable[str]) -> list[MetricRequest]:
    """Every request of these metrics."""
    return [request for name in sorted(names) for request in REQUESTS[name]]
