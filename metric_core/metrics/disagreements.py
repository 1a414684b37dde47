"""Whether the retrieved contexts of a row disagree, and whether the response follows the older one."""

from collections.abc import Sequence
from itertools import combinations

from metric_core import columns
from metric_core.columns import ColumnType
from metric_core.declarations.diagnosis_class import ScoreClass, SystemPart
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.own_products import OwnProduct
from metric_core.declarations.parameter_checks import allow_none, require_positive_integer
from metric_core.disagreements.answers import age_of, find_older, find_taken
from metric_core.disagreements.conflicts import Disagreement, find_disagreements, find_relevant
from metric_core.evidence import Evidence
from metric_core.metrics._votes import exact_label
from metric_core.prompts.judge_questions import YES, YES_NO, ChoiceQuestion, CustomKind, RatingRequest
from metric_core.reasons import NEEDS_LANGUAGE_MODEL, NO_CONTEXTS, NO_USABLE_RATING
from metric_core.records import Direction, Sample, Score
from metric_core.stages import Product

NO_DISAGREEMENT = "the contexts do not disagree"
NOT_DATED = "the contexts that disagree have no dates or versions to compare"
NOT_TAKEN = "the response follows none of the contexts that disagree"

_PASSAGES_DIFFER = CustomKind(
    "rag_assay.disagreeing_passages",
    """
{passage}
{other_passage}
{question}
Do the two passages contradict each other in what they say about the question: does one give a number, date, name, or
yes or no, and the other one another for the same thing? Passages about different things do not contradict each other,
and neither does a passage that says nothing about the question. {answer}
""",
)
_SOURCE = "rag-assay: values at the same place of aligned statements"


def _find(evidence: Evidence) -> list[Disagreement] | Score:
    contexts = evidence.column(columns.RETRIEVED_CONTEXTS)
    if not contexts:
        return Score.undefined(NO_CONTEXTS)
    return find_disagreements(contexts, evidence.sample.user_input or "")


_DISAGREEMENTS = OwnProduct(
    name="disagreements of contexts",
    compute=_find,
    reads=(columns.RETRIEVED_CONTEXTS,),
    optional_columns=(columns.USER_INPUT,),
    undefined={NO_CONTEXTS: "nothing was retrieved"},
)


def asked_pairs(sample: Sample, parameters: Parameters) -> list[tuple[int, int]]:
    """Return the pairs of contexts that a judge is asked about: of a row without values that differ, the first ones.

    >>> row = Sample(user_input="Who led it?", retrieved_contexts=("Ada led it.", "It was led by Grace.", "It rains."))
    >>> asked_pairs(row, {"pairs": 6}), asked_pairs(row, {"pairs": None})
    ([(0, 1)], [])
    """
    contexts, question = sample.retrieved_contexts or (), sample.user_input or ""
    if parameters["pairs"] is None or find_disagreements(contexts, question):
        return []
    ranks = sorted({contexts[index]: index for index in reversed(find_relevant(contexts, question))}.values())
    by_rank = sorted(combinations(ranks, 2), key=lambda pair: pair[::-1])
    return sorted(by_rank[: parameters["pairs"]])


def pair_of(template: str) -> tuple[int, int]:
    """Return the pair of contexts that a question of a name is about.

    >>> pair_of("passages:0:3")
    (0, 3)
    """
    _, one, other = template.split(":")
    return int(one), int(other)


def _ask(sample: Sample, parameters: Parameters) -> list[RatingRequest]:
    contexts = sample.retrieved_contexts or ()
    return [
        RatingRequest(
            f"passages:{one}:{other}",
            ChoiceQuestion(
                _PASSAGES_DIFFER,
                {
                    "passage": contexts[one],
                    "other_passage": contexts[other],
                    columns.USER_INPUT: sample.user_input or "",
                },
                YES_NO,
            ),
        )
        for one, other in asked_pairs(sample, parameters)
    ]


def _context_conflict(request: MetricRequest, evidence: Evidence) -> Score:
    found: Sequence[Disagreement] = evidence.product(_DISAGREEMENTS.name)
    if found or request.parameters["pairs"] is None:
        return Score.scored(float(bool(found)))
    labels = [exact_label(rating.value, YES_NO) for rating in evidence.ratings_of(request.key)]
    if YES not in labels and None in labels:
        return Score.failed(NO_USABLE_RATING)
    return Score.scored(float(YES in labels))


def _stale_answer(_: MetricRequest, evidence: Evidence) -> Score:
    found: Sequence[Disagreement] = evidence.product(_DISAGREEMENTS.name)
    if not found:
        return Score.undefined(NO_DISAGREEMENT)
    response = evidence.column(columns.RESPONSE)
    ages = [age_of(text) for text in evidence.own_column(columns.RETRIEVED_CONTEXT_DATES, ColumnType.TEXTS)]
    if len(ages) != len(evidence.column(columns.RETRIEVED_CONTEXTS)):
        return Score.undefined(NOT_DATED)
    dated = [(each, older) for each in found if (older := find_older(each, ages)) is not None]
    if not dated:
        return Score.undefined(NOT_DATED)
    taken = [(find_taken(response, each), older is each.one) for each, older in dated]
    if not any(each.one or each.other for each, _ in taken):
        return Score.undefined(NOT_TAKEN)
    follows_older = (each.one and not each.other if is_one else each.other and not each.one for each, is_one in taken)
    return Score.scored(float(any(follows_older)))


CONTEXT_CONFLICT = Metric(
    name="context_conflict",
    summary="Whether two retrieved contexts give different values for the same thing; lower is better.",
    question="Do two passages give different values for the same thing?",
    source=_SOURCE,
    family="disagreements",
    columns=constant(columns.RETRIEVED_CONTEXTS),
    optional_columns=constant(columns.USER_INPUT),
    products=lambda parameters: () if parameters["pairs"] is None else (Product.RATINGS,),
    own_products=(_DISAGREEMENTS,),
    compute=_context_conflict,
    direction=Direction.LOWER,
    undefined={
        **_DISAGREEMENTS.undefined,
        NEEDS_LANGUAGE_MODEL: "a judge is asked about pairs of contexts, and it is not a language model",
    },
    parameters={
        "pairs": Parameter(
            summary="maximum number of pairs of contexts per row that the judge is asked about, where no value differs",
            default=None,
            check=allow_none(require_positive_integer),
        )
    },
    ratings=_ask,
    question_kinds=(_PASSAGES_DIFFER,),
    language_model=True,
    in_default_suite=False,
    diagnosis=ScoreClass(
        name="passages disagree",
        meaning="Nothing else is wrong with the answer, but two passages give different values for the same thing.",
        part=SystemPart.INDEX,
        applies=lambda score: score.value == 1,
        before="badly ranked",
    ),
)

STALE_ANSWER = Metric(
    name="stale_answer",
    summary="Whether the response follows the older of two contexts that disagree; lower is better.",
    question="Does the answer follow the older of two passages that disagree?",
    source=_SOURCE,
    family="disagreements",
    columns=constant(columns.RESPONSE, columns.RETRIEVED_CONTEXTS),
    optional_columns=constant(columns.USER_INPUT),
    products=constant(),
    own_products=(_DISAGREEMENTS,),
    own_columns={columns.RETRIEVED_CONTEXT_DATES: ColumnType.TEXTS},
    compute=_stale_answer,
    direction=Direction.LOWER,
    undefined={
        **_DISAGREEMENTS.undefined,
        NO_DISAGREEMENT: "no two contexts give different values for the same thing",
        NOT_DATED: "the contexts that disagree have no dates or versions of one kind, or equal ones",
        NOT_TAKEN: "the response has the value of none of them",
    },
    in_default_suite=False,
)
