"""Answer relevancy: similarity of the questions that the response would answer to the user question."""

from collections.abc import Sequence
from statistics import fmean

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.declarations.parameter_checks import require_positive_integer
from metric_core.evidence import Evidence
from metric_core.metrics._supports import all_known
from metric_core.records import Question, Score
from metric_core.stages import Product


def answer_relevancy(questions: Sequence[Question], cosines: Sequence[float | None]) -> Score:
    """Return the mean cosine of the regenerated questions with the user question; 0 if all are noncommittal.

    Questions without text are ignored. The mean is not clamped: cosines can be negative.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer Relevance; the rule for noncommittal
    responses is that of Ragas.

    Args:
        questions: Questions regenerated from the response.
        cosines: Cosine of each question with the user question, in [-1, 1]; None for a zero vector.

    Returns:
        A score in [-1, 1]; undefined (no question with text, or a zero vector among them).

    Raises:
        ValueError: If the arguments have different lengths.

    >>> regenerated = [Question("Where in Europe is France?"), Question("What is France's location?"), Question("")]
    >>> answer_relevancy(regenerated, [0.8, 0.6, None]).value
    0.7
    """
    nonempty = [(q, cosine) for q, cosine in zip(questions, cosines, strict=True) if q.text.strip()]
    if not nonempty:
        return Score.undefined(reasons.NO_QUESTIONS)
    if all(question.noncommittal for question, _ in nonempty):
        return Score.scored(0.0)
    known = all_known(cosine for _, cosine in nonempty)
    return Score.undefined(reasons.ZERO_VECTOR) if known is None else Score.scored(fmean(known))


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    count = request.parameters["strictness"]  # another metric of the run may ask for more
    return answer_relevancy(evidence.regenerated_questions()[:count], evidence.cosines()[:count])


ANSWER_RELEVANCY = Metric(
    name="answer_relevancy",
    summary="Similarity of the questions that the response would answer to the user question.",
    question="Does the answer reply to the question, without evading it?",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Answer Relevance',
    family="answer_relevancy",
    columns=constant(columns.USER_INPUT, columns.RESPONSE),
    products=constant(Product.QUESTION_SIMILARITY),
    compute=_compute,
    bounds=constant(-1.0, 1.0),
    undefined={
        reasons.NO_QUESTIONS: "the response answers no question or is empty",
        reasons.ZERO_VECTOR: "the embedding of one of the questions is a zero vector",
    },
    aliases=("response_relevancy", "answer_relevance"),
    parameters={
        "strictness": Parameter(
            summary="number of questions to regenerate from a response", default=3, check=require_positive_integer
        )
    },
)
