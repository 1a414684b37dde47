"""Find metrics by name or alias, parse requests, and select metrics that fit the data."""

from collections.abc import Callable, Collection, Iterator

from metric_core.declarations.metric import Metric, MetricRequest
from metric_core.declarations.metric_text import parse_metrics
from metric_core.errors import MetricParameterError, UnknownMetricError
from metric_core.metrics.answer_correctness import ANSWER_CORRECTNESS
from metric_core.metrics.answer_relevancy import ANSWER_RELEVANCY
from metric_core.metrics.answer_similarity import ANSWER_SIMILARITY
from metric_core.metrics.aspect_critic import ASPECT_CRITIC
from metric_core.metrics.citation_quality import (
    CITATION_F1,
    CITATION_PRECISION,
    CITATION_RECALL,
    DANGLING_CITATIONS,
    MISATTRIBUTED_CLAIMS,
    UNCITED_CLAIMS,
)
from metric_core.metrics.context_entity_recall import CONTEXT_ENTITY_RECALL
from metric_core.metrics.context_precision import CONTEXT_PRECISION, CONTEXT_UTILIZATION
from metric_core.metrics.context_recall import CONTEXT_RECALL
from metric_core.metrics.context_relevancy import CONTEXT_RELEVANCY
from metric_core.metrics.context_sufficiency import CONTEXT_SUFFICIENCY
from metric_core.metrics.discrete_criteria import DISCRETE_CRITERIA
from metric_core.metrics.factual_correctness import FACTUAL_CORRECTNESS
from metric_core.metrics.faithfulness import FAITHFULNESS
from metric_core.metrics.key_points import KEY_POINT_PRECISION, KEY_POINT_RECALL
from metric_core.metrics.noise_sensitivity import NOISE_SENSITIVITY
from metric_core.metrics.numeric_criteria import NUMERIC_CRITERIA
from metric_core.metrics.nvidia import NV_ACCURACY, NV_CONTEXT_RELEVANCE, NV_RESPONSE_GROUNDEDNESS
from metric_core.metrics.reference_contexts import (
    ID_CONTEXT_PRECISION,
    ID_CONTEXT_RECALL,
    NON_LLM_CONTEXT_PRECISION,
    NON_LLM_CONTEXT_RECALL,
)
from metric_core.metrics.refusals import ABSTENTION_ACCURACY, OVER_REFUSAL
from metric_core.metrics.retrieval_rankings import (
    AVERAGE_PRECISION,
    HIT_RATE,
    JUDGED_PASSAGES,
    NDCG,
    RECIPROCAL_RANK,
    RETRIEVAL_PRECISION,
    RETRIEVAL_RECALL,
)
from metric_core.metrics.rubrics import INSTANCE_RUBRICS, RUBRICS
from metric_core.metrics.string_similarity import STRING_SIMILARITY
from metric_core.parsing.installed_points import installed_points
from metric_core.parsing.suggestions import suggest_names


def _of_rooms() -> Iterator[Metric]:
    """Yield the metrics of this package that come in by the door of installed ones, and leave with their rooms."""
    points = {point.name: point for point in installed_points("rag_assay.metrics")}
    yield from (points[name].load() for name in sorted(points) if points[name].value.startswith(f"{__package__}."))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        FAITHFULNESS,
        ANSWER_RELEVANCY,
        CONTEXT_PRECISION,
        CONTEXT_UTILIZATION,
        NON_LLM_CONTEXT_PRECISION,
        ID_CONTEXT_PRECISION,
        CONTEXT_RECALL,
        NON_LLM_CONTEXT_RECALL,
        ID_CONTEXT_RECALL,
        NDCG,
        RETRIEVAL_RECALL,
        RETRIEVAL_PRECISION,
        RECIPROCAL_RANK,
        AVERAGE_PRECISION,
        HIT_RATE,
        JUDGED_PASSAGES,
        CONTEXT_RELEVANCY,
        CONTEXT_SUFFICIENCY,
        CONTEXT_ENTITY_RECALL,
        ANSWER_SIMILARITY,
        ANSWER_CORRECTNESS,
        FACTUAL_CORRECTNESS,
        KEY_POINT_RECALL,
        KEY_POINT_PRECISION,
        NOISE_SENSITIVITY,
        CITATION_PRECISION,
        CITATION_RECALL,
        CITATION_F1,
        MISATTRIBUTED_CLAIMS,
        UNCITED_CLAIMS,
        DANGLING_CITATIONS,
        ABSTENTION_ACCURACY,
        OVER_REFUSAL,
        NV_ACCURACY,
        NV_CONTEXT_RELEVANCE,
        NV_RESPONSE_GROUNDEDNESS,
        ASPECT_CRITIC,
        DISCRETE_CRITERIA,
        NUMERIC_CRITERIA,
        RUBRICS,
        INSTANCE_RUBRICS,
        STRING_SIMILARITY,
        *_of_rooms(),
    )
}
"""Name -> metric, in display order."""

_BY_ANY_NAME: dict[str, Metric] = {
    name: metric for metric in METRICS.values() for name in (metric.name, *metric.aliases)
}
_BY_LETTERS: dict[str, Metric] = {name.replace("_", ""): metric for name, metric in _BY_ANY_NAME.items()}


def resolve(name: str) -> Metric:
    """Return the metric with a name or alias, ignoring case, hyphens and underscores, so that names of classes count.

    Raises:
        UnknownMetricError: If no metric has that name.

    >>> resolve("Semantic-Similarity").name, resolve("AnswerAccuracy").name
    ('answer_similarity', 'nv_accuracy')
    >>> resolve("faithfullness")
    Traceback (most recent call last):
        ...
    metric_core.errors.UnknownMetricError: unknown metric 'faithfullness'. Did you mean faithfulness?
    """
    wanted = name.strip().casefold().replace("-", "_")
    letters = wanted.replace("_", "")
    if letters not in _BY_LETTERS:
        raise UnknownMetricError(name, _suggest(wanted))
    return _BY_LETTERS[letters]


def _suggest(wanted: str) -> list[str]:
    """Return names close to the requested one, at most one per metric."""
    nearest: dict[str, str] = {}
    for name in suggest_names(wanted, _BY_ANY_NAME, most=8):
        nearest.setdefault(_BY_ANY_NAME[name].name, name)
    return list(nearest.values())[:4]


def parse_request(text: str, find: Callable[[str], Metric] = resolve) -> MetricRequest:
    """Parse a metric as written on a command line: its name, and parameters in parentheses.

    `metric_core.declarations.metric_text` has the grammar of values.

    Args:
        find: Function from a name to a metric, for user-defined metrics.

    Raises:
        UnknownMetricError: If no metric has that name.
        MetricParameterError: If the text is malformed, or the metric rejects the parameters.

    >>> parse_request("factual_correctness(mode=recall, beta=0.5)").parameters
    {'mode': 'recall', 'beta': 0.5, 'recall_basis': None}
    >>> parse_request("answer_correctness(weights=[0.5, 0.5])").key
    'answer_correctness(weights=[0.5,0.5])'
    """
    found = parse_metrics(text)
    if len(found) != 1:
        raise MetricParameterError(f"one metric is written name or name(parameter=value, ...), got {text!r}")
    metric = find(found[0].name)
    found[0].refuse_unknown_parameters(metric.name, list(metric.parameters))
    return metric.request(found[0].parameters)


def default_suite(available_columns: Collection[str], can_rate: bool = True) -> list[MetricRequest]:
    """Return every metric that needs no parameters and whose columns are all available, in the order of `METRICS`.

    Args:
        available_columns: Columns that the data has: those of samples, and others.
        can_rate: False leaves out the metrics that need a language model as judge.

    >>> [request.key for request in default_suite({"user_input", "response"})]
    ['answer_relevancy']
    """
    requests = [metric.request() for metric in METRICS.values() if metric.in_default_suite]
    usable = (request for request in requests if can_rate or not request.needs_language_model)
    return [
        request
        for request in usable
        if not request.lacking(available_columns) and request.own_columns.keys() <= set(available_columns)
    ]
