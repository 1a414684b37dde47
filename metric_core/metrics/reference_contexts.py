"""Precision and recall of retrieved contexts against reference contexts, by string or by id, without a judge."""

from collections.abc import Iterable, Sequence
from typing import Any

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.declarations.parameter_checks import require_number_in
from metric_core.evidence import Evidence
from metric_core.metrics.context_precision import context_precision
from metric_core.metrics.string_similarity import DISTANCE, similarity_of
from metric_core.records import Score


def _check_exclusive_threshold(value: Any) -> str | None:
    """Accept numbers that a similarity can exceed."""
    return None if require_number_in(0, 1)(value) is None and value < 1 else "a number from 0 to less than 1"


def non_llm_context_precision(
    retrieved: Sequence[str], reference: Sequence[str], threshold: float = 0.5, distance: str = "levenshtein"
) -> Score:
    """Return the average precision of the retrieved contexts; those similar enough to a reference context are relevant.

    Source: Ragas documentation, Context Precision.

    Args:
        retrieved: Retrieved contexts, best rank first.
        threshold: Similarity to reach or exceed, in [0, 1].
        distance: Name of a string distance, see `string_similarity.similarity_of`.

    Returns:
        A score in [0, 1]; undefined (nothing retrieved, or no reference contexts).

    >>> non_llm_context_precision(["abxy", "qrst"], ["abcd"]).value  # 0.5 is enough
    1.0
    """
    if retrieved and not reference:
        return Score.undefined(reasons.NO_REFERENCE_CONTEXTS)
    return context_precision([_best_similarity(context, reference, distance) >= threshold for context in retrieved])


def non_llm_context_recall(
    retrieved: Sequence[str], reference: Sequence[str], threshold: float = 0.5, distance: str = "levenshtein"
) -> Score:
    """Return the share of reference contexts to which a retrieved context is similar enough.

    Source: Ragas documentation, Context Recall.

    Args:
        threshold: Similarity to exceed, in [0, 1).
        distance: Name of a string distance, see `string_similarity.similarity_of`.

    Returns:
        A score in [0, 1], 0 if nothing was retrieved; undefined (no reference contexts).

    >>> non_llm_context_recall(["abcx"], ["abcd", "qrst"]).value
    0.5
    """
    if not reference:
        return Score.undefined(reasons.NO_REFERENCE_CONTEXTS)
    matched = [context for context in reference if _best_similarity(context, retrieved, distance) > threshold]
    return Score.scored(len(matched) / len(reference))


def id_context_precision(retrieved: Iterable[str], reference: Iterable[str]) -> Score:
    """Return the share of distinct retrieved ids that are reference ids. Ids are compared as texts; ranks are ignored.

    Source: Ragas documentation, Context Precision.

    Returns:
        A score in [0, 1]; undefined (nothing retrieved).

    >>> id_context_precision(["a", "b", "b"], ["b", "c"]).value
    0.5
    """
    return _share(retrieved, reference, reasons.NO_CONTEXTS)


def id_context_recall(retrieved: Iterable[str], reference: Iterable[str]) -> Score:
    """Return the share of distinct reference ids that were retrieved. Ids are compared as texts.

    Source: Ragas documentation, Context Recall.

    Returns:
        A score in [0, 1], 0 if nothing was retrieved; undefined (no reference ids).

    >>> id_context_recall(["a", "b"], ["b", "c", "d"]).value
    0.3333333333333333
    """
    return _share(reference, retrieved, reasons.NO_REFERENCE_CONTEXTS)


def _share(ids: Iterable[str], others: Iterable[str], nothing: str) -> Score:
    """Return the share of distinct ids that are among the others; undefined without ids."""
    distinct = set(map(str, ids))
    common = distinct & set(map(str, others))
    return Score.scored(len(common) / len(distinct)) if distinct else Score.undefined(nothing)


def _best_similarity(context: str, others: Iterable[str], distance: str) -> float:
    return max((similarity_of(context, other, distance) for other in others), default=-1.0)


def _texts(evidence: Evidence) -> tuple[Sequence[str], Sequence[str]]:
    return evidence.column(columns.RETRIEVED_CONTEXTS), evidence.column(columns.REFERENCE_CONTEXTS)


def _ids(evidence: Evidence) -> tuple[Sequence[str], Sequence[str]]:
    return evidence.column(columns.RETRIEVED_CONTEXT_IDS), evidence.column(columns.REFERENCE_CONTEXT_IDS)


def _non_llm_precision(request: MetricRequest, evidence: Evidence) -> Score:
    return non_llm_context_precision(*_texts(evidence), **request.parameters)


def _non_llm_recall(request: MetricRequest, evidence: Evidence) -> Score:
    return non_llm_context_recall(*_texts(evidence), **request.parameters)


def _id_precision(_: MetricRequest, evidence: Evidence) -> Score:
    return id_context_precision(*_ids(evidence))


def _id_recall(_: MetricRequest, evidence: Evidence) -> Score:
    return id_context_recall(*_ids(evidence))


NON_LLM_CONTEXT_PRECISION = Metric(
    name="non_llm_context_precision",
    summary="Whether the contexts that resemble a reference context are ranked first; needs no judge.",
    source="Ragas documentation, Context Precision",
    family="reference_contexts",
    columns=constant(columns.RETRIEVED_CONTEXTS, columns.REFERENCE_CONTEXTS),
    products=constant(),
    compute=_non_llm_precision,
    undefined={
        reasons.NO_CONTEXTS: "nothing was retrieved",
        reasons.NO_REFERENCE_CONTEXTS: "there are no reference contexts",
    },
    aliases=("non_llm_context_precision_with_reference",),
    parameters={
        "threshold": Parameter(
            summary="least similarity at which two contexts count as the same",
            default=0.5,
            check=require_number_in(0, 1),
        ),
        "distance": DISTANCE,
    },
)

NON_LLM_CONTEXT_RECALL = Metric(
    name="non_llm_context_recall",
    summary="Share of the reference contexts that a retrieved context resembles; needs no judge.",
    source="Ragas documentation, Context Recall",
    family="reference_contexts",
    columns=constant(columns.RETRIEVED_CONTEXTS, columns.REFERENCE_CONTEXTS),
    products=constant(),
    compute=_non_llm_recall,
    undefined={reasons.NO_REFERENCE_CONTEXTS: "there are no reference contexts"},
    parameters={
        "threshold": Parameter(
            summary="similarity above which two contexts count as the same",
            default=0.5,
            check=_check_exclusive_threshold,
        ),
        "distance": DISTANCE,
    },
)

ID_CONTEXT_PRECISION = Metric(
    name="id_context_precision",
    summary="Share of the retrieved ids that are reference ids; needs no judge.",
    source="Ragas documentation, Context Precision",
    family="reference_contexts",
    columns=constant(columns.RETRIEVED_CONTEXT_IDS, columns.REFERENCE_CONTEXT_IDS),
    products=constant(),
    compute=_id_precision,
    undefined={reasons.NO_CONTEXTS: "nothing was retrieved"},
    aliases=("id_based_context_precision",),
)

ID_CONTEXT_RECALL = Metric(
    name="id_context_recall",
    summary="Share of the reference ids that were retrieved; needs no judge.",
    source="Ragas documentation, Context Recall",
    family="reference_contexts",
    columns=constant(columns.RETRIEVED_CONTEXT_IDS, columns.REFERENCE_CONTEXT_IDS),
    products=constant(),
    compute=_id_recall,
    undefined={reasons.NO_REFERENCE_CONTEXTS: "there are no reference contexts"},
    aliases=("id_based_context_recall",),
)
