"""Answer relevancy: how close the questions that the response would answer are to the question that was asked."""

from collections.abc import Sequence
from statistics import fmean

from metric_core import columns, reasons
from metric_core.evidence import Evidence
from metric_core.metric import Metric, MetricRequest, Parameter, constant, require_positive_integer
from metric_core.metrics._supports import all_known
from metric_core.records import Question, Score
from metric_core.stages import Product


def answer_relevancy(questions: Sequence[Question], cosines: Sequence[float | None]) -> Score:
    """Mean cosine of the regenerated questions with the user's; 0 if all of them come from an evasive response.

    Questions without text are dropped. The mean is not clamped: a cosine may be negative.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer Relevance; the rule for evasive responses is that
    of Ragas.

    Args:
        questions: the questions regenerated from the response.
        cosines: cosine of each question with the user's, in [-1, 1]; None for a zero vector.

    Returns:
        A score in [-1, 1]; undefined (no question left, or a zero vector among those that are read).

    Raises:
        ValueError: the two have different lengths.

    >>> regenerated = [Question("Where in Europe is France?"), Question("What is France's location?"), Question("")]
    >>> answer_relevancy(regenerated, [0.8, 0.6, None]).value
    0.7
    """
    asked = [(q, cosine) for q, cosine in zip(questions, cosines, strict=True) if q.text.strip()]
    if not asked:
        return Score.undefined(reasons.NO_QUESTIONS)
    if all(question.noncommittal for question, _ in asked):
        return Score.scored(0.0)
    known = all_known(cosine for _, cosine in asked)
    return Score.undefined(reasons.ZERO_VECTOR) if known is None else Score.scored(fmean(known))


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    wanted = request.parameters["strictness"]  # another metric of the run may want more
    return answer_relevancy(evidence.regenerated_questions()[:wanted], evidence.cosines()[:wanted])


ANSWER_RELEVANCY = Metric(
    name="answer_relevancy",
    summary="Closeness of the questions that the response would answer to the question that was asked.",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer Relevance',
    family="answer_relevancy",
    columns=constant(columns.USER_INPUT, columns.RESPONSE),
    products=constant(Product.QUESTION_SIMILARITY),
    compute=_compute,
    bounds=constant(-1.0, 1.0),
    undefined={
        reasons.NO_QUESTIONS: "the response answers no question, or is empty",
        reasons.ZERO_VECTOR: "the embedder has no direction for one of the questions",
    },
    aliases=("response_relevancy", "answer_relevance"),
    parameters={
        "strictness": Parameter(
            summary="how many questions to regenerate from a response", default=3, check=require_positive_integer
        )
    },
)
