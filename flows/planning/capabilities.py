"""Check before a run which metrics' questions the judge can answer."""

from collections.abc import Sequence

from metric_core.declarations.metric import MetricRequest
from metric_core.prompts.judge_questions import Kind
from metric_core.question_kinds import KindGroup
from metric_core.stages import PRODUCTS, Product, closure
from tasks.models.judges.protocol import Judge


def question_kinds(request: MetricRequest) -> list[Kind]:
    """Return the kinds of questions that a metric needs answered.

    >>> from metric_core.metrics.registry import parse_request
    >>> [str(kind) for kind in question_kinds(parse_request("faithfulness"))]
    ['claims', 'verdict']
    """
    kinds: dict[Kind, None] = {}
    for product in sorted(closure(request.products), key=list(Product).index):
        if product is Product.RATINGS:
            kinds |= dict.fromkeys(request.metric.question_kinds)
        elif (kind := PRODUCTS[product].asks) is not None:
            kinds[kind] = None
    return list(kinds)


def scoring_kinds(request: MetricRequest) -> list[Kind]:
    """Return the kinds of questions whose answers are a metric's scores: verdicts and ratings, else what is written.

    >>> from metric_core.metrics.registry import parse_request
    >>> [str(kind) for kind in scoring_kinds(parse_request("faithfulness"))]
    ['verdict']
    """
    kinds = question_kinds(request)
    return [kind for kind in kinds if kind.group is not KindGroup.WRITING] or kinds


def find_unanswerable(requests: Sequence[MetricRequest], judge: Judge) -> dict[str, list[str]]:
    """Return the kinds of questions that the judge cannot answer, by the metric that needs them."""
    unable: dict[str, list[str]] = {}
    for request in requests:
        kinds = [str(kind) for kind in question_kinds(request) if not judge.can_answer(kind)]
        if kinds:
            unable[request.key] = kinds
    return unable
