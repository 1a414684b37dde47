"""String similarity of two texts, without judge or embedder."""

from metric_core import columns
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.evidence import Evidence
from metric_core.records import Score

_DISTANCES = {
    "levenshtein": "Levenshtein",
    "hamming": "Hamming",
    "jaro": "Jaro",
    "jaro_winkler": "JaroWinkler",
}
"""Name of each distance -> its name in the library."""

DISTANCE = Parameter(summary="string distance to use", default="levenshtein", choices=tuple(_DISTANCES))
"""Parameter of every metric that compares strings."""


def similarity_of(one: str, other: str, distance: str = "levenshtein") -> float:
    """Return 1 minus the normalized distance of two strings, in [0, 1]; 1 for two empty strings.

    Source: Ragas documentation, Traditional NLP Metrics.

    Args:
        distance: "levenshtein", "hamming", "jaro" or "jaro_winkler".

    >>> similarity_of("sunday", "monday")
    0.6666666666666667
    """
    from rapidfuzz import distance as library  # noqa: PLC0415 47 modules, only for rows that are computed

    return 1.0 - float(getattr(library, _DISTANCES[distance]).normalized_distance(one, other))


def string_similarity(response: str, reference: str, distance: str = "levenshtein") -> Score:
    """Return the similarity of response and reference as strings.

    Args:
        distance: Name of a string distance, see `similarity_of`.

    Returns:
        A score in [0, 1].

    >>> string_similarity("", "").value
    1.0
    """
    return Score.scored(similarity_of(response, reference, distance))


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    response, reference = evidence.column(columns.RESPONSE), evidence.column(columns.REFERENCE)
    return string_similarity(response, reference, request.parameters["distance"])


STRING_SIMILARITY = Metric(
    name="string_similarity",
    summary="Similarity of response and reference as strings; needs no judge.",
    question="Are answer and reference nearly the same text?",
    source="Ragas documentation, Traditional NLP Metrics",
    family="string_similarity",
    columns=constant(columns.RESPONSE, columns.REFERENCE),
    products=constant(),
    compute=_compute,
    undefined={},
    aliases=("non_llm_string_similarity",),
    parameters={"distance": DISTANCE},
    in_default_suite=False,
)
