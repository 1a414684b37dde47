"""Whether the retrieved contexts of a row disagree, and whether the response follows the older one."""

from collections.abc import Sequence

from metric_core import columns
from metric_core.columns import ColumnType
from metric_core.declarations.diagnosis_class import ScoreClass, SystemPart
from metric_core.declarations.metric import Metric, MetricRequest, constant
from metric_core.declarations.own_products import OwnProduct
from metric_core.disagreements.answers import age_of, find_older, find_taken
from metric_core.disagreements.conflicts import Disagreement, find_disagreements
from metric_core.evidence import Evidence
from metric_core.reasons import NO_CONTEXTS
from metric_core.records import Direction, Score

NO_DISAGREEMENT = "the contexts do not disagree"
NOT_DATED = "the contexts that disagree have no dates or versions to compare"
NOT_TAKEN = "the response follows none of the contexts that disagree"

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


def _context_conflict(_: MetricRequest, evidence: Evidence) -> Score:
    return Score.scored(float(bool(evidence.product(_DISAGREEMENTS.name))))


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
    products=constant(),
    own_products=(_DISAGREEMENTS,),
    compute=_context_conflict,
    direction=Direction.LOWER,
    undefined=_DISAGREEMENTS.undefined,
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
