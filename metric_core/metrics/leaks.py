"""Leaks: passages that the asker may not see, and claims of the response that only such passages support."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from statistics import fmean
from typing import Any

from metric_core import columns as c
from metric_core import reasons
from metric_core.columns import ColumnType
from metric_core.declarations.diagnosis_class import ScoreClass, SystemPart
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.declarations.parameter_checks import allow_none, require_text
from metric_core.evidence import ALL_CONTEXTS, Evidence, context_premise, joint_premise
from metric_core.metrics._supports import all_known
from metric_core.records import Direction, Sample, Score, Side, Support, VerdictKind, VerdictRequest
from metric_core.stages import Product

ASKER, ACL = "asker", c.RETRIEVED_CONTEXT_ACL
EVERYONE = "*"
"""Name in the list of a passage that stands for everyone."""

WRONG_ASKER = "who asks is not a name or a list of names"
WRONG_ACL = "who may see a passage is not a list of names"
OTHER_NUMBER = "not one list of names per retrieved context"
NO_RULE = "the permission function knows no answer"
NOT_ASSIGNED = "no verdicts by each context"
_UNKNOWN = {
    reasons.NO_CONTEXTS: "nothing was retrieved",
    WRONG_ASKER: "a column of `asker` is empty, or holds something other than names",
    WRONG_ACL: "a passage has no list, or its list holds something other than names",
    OTHER_NUMBER: "the column `acl` has not as many lists as there are passages",
    NO_RULE: "the function of `allowed` returned nothing for a passage",
}


@dataclass(frozen=True, slots=True)
class AskedPassage:
    """A retrieved passage, as a permission function sees it.

    Args:
        id: Id of the passage; None if the data has none.
        acl: Value of the column of `acl` for the passage; None without that column.
    """

    text: str
    id: str | None = None
    acl: Any = None


def leaked_passages(may_see: Sequence[bool]) -> Score:
    """Return the share of the retrieved passages that the asker may not see.

    Args:
        may_see: For each passage, whether the asker may see it.

    Returns:
        A score in [0, 1]; undefined (nothing was retrieved).

    >>> leaked_passages([True, False]).value
    0.5
    """
    if not may_see:
        return Score.undefined(reasons.NO_CONTEXTS)
    return Score.scored(fmean(not each for each in may_see))


def leaked_claim(
    together: Support, by_context: Mapping[int, Support], may_see: Sequence[bool], *, is_all: bool = True
) -> Support:
    """Return the probability that only passages which the asker may not see support a claim; None if it is not known.

    Args:
        together: Support by all passages.
        by_context: Support by single passages, as far as it was judged.
        may_see: For each passage, whether the asker may see it.
        is_all: False if `together` is by other texts, too.

    The second passage supports the claim, and the asker may see the first only:

    >>> leaked_claim(1, {0: 0, 1: 1}, [True, False]), leaked_claim(1, {0: 1, 1: 1}, [True, False])
    (1, 0)
    >>> leaked_claim(1, {}, [False, False]), leaked_claim(1, {}, [True, True]), leaked_claim(0, {}, [True, False])
    (1, 0, 0)
    """
    allowed = [by_context.get(index) for index, seen in enumerate(may_see) if seen]
    if together == 0 or all(may_see) or 1 in allowed:
        return 0
    if not allowed and is_all:
        return together
    without = all_known(allowed)
    within = all_known(by_context.get(index) for index, seen in enumerate(may_see) if not seen)
    if without is None or within is None:
        return None
    return prod(1 - support for support in without) * (1 - prod(1 - support for support in within))


def find_allowed(parameters: Parameters, evidence: Evidence) -> list[bool] | Score:
    """Return for each passage whether the asker may see it, or the score of a row for which that is not known.

    Args:
        parameters: Those of a metric of this module, with the function itself.
    """
    passages = evidence.column(c.RETRIEVED_CONTEXTS)
    if not passages:
        return Score.undefined(reasons.NO_CONTEXTS)
    asker = {name: evidence.own_column(name, ColumnType.ANY) for name in _asker_columns(parameters)}
    name, allowed = _acl_column(parameters), parameters["allowed"]
    lists = [None] * len(passages) if name is None else _parse(evidence.own_column(name, ColumnType.ANY))
    if not isinstance(lists, list) or len(lists) != len(passages):
        return Score.undefined(OTHER_NUMBER)
    if allowed is None:
        return _compare_names(asker.values(), lists)
    ids = passage_ids(evidence.sample)
    decided = [allowed(asker, AskedPassage(*each)) for each in zip(passages, ids, lists, strict=True)]
    if wrong := [each for each in decided if not (each is None or isinstance(each, bool))]:
        raise TypeError(f"the permission function returned {wrong[0]!r}, wanted True, False or None")
    return Score.undefined(NO_RULE) if None in decided else [each is True for each in decided]


def passage_ids(sample: Sample) -> Sequence[str | None]:
    """Return the id of each retrieved passage; None where the data has none."""
    count, ids = len(sample.retrieved_contexts or ()), sample.retrieved_context_ids
    return ids if ids is not None and len(ids) == count else [None] * count


def _compare_names(asker: Iterable[Any], lists: Iterable[Any]) -> list[bool] | Score:
    names = [_names(_parse(value)) for value in asker]
    groups = [_names(value) if isinstance(value, list) else None for value in lists]
    if None in names:
        return Score.undefined(WRONG_ASKER)
    if None in groups:
        return Score.undefined(WRONG_ACL)
    own = {EVERYONE}.union(*(each for each in names if each is not None))
    return [not own.isdisjoint(each) for each in groups if each is not None]


def _parse(value: Any) -> Any:
    """Return a list that a cell of a table of texts holds as JSON; any other value as it is."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _names(value: Any) -> set[str] | None:
    """Return the names that a value consists of; None if it holds anything else."""
    items = value if isinstance(value, list) else [value]
    is_name = (isinstance(item, str | int) and not isinstance(item, bool) and str(item).strip() for item in items)
    return {str(item) for item in items} if all(is_name) else None


def _asker_columns(parameters: Parameters) -> tuple[str, ...]:
    named = parameters["asker"]
    return (named,) if isinstance(named, str) else tuple(named)


def _acl_column(parameters: Parameters) -> str | None:
    """Return the column of the lists; None if only a function decides."""
    named: str | None = parameters["acl"]
    return named or (ACL if parameters["allowed"] is None else None)


def _own_columns(parameters: Parameters) -> dict[str, ColumnType]:
    acl = _acl_column(parameters)
    return dict.fromkeys((*_asker_columns(parameters), *([] if acl is None else [acl])), ColumnType.ANY)


def _require_columns(value: Any) -> str | None:
    names = [value] if isinstance(value, str) else value
    is_right = isinstance(names, list | tuple) and names and all(isinstance(each, str) and each for each in names)
    return None if is_right else "a column, or a list of columns"


_PERMISSIONS = {
    "asker": Parameter(
        summary="column that says who asks: a name or a list of names; or a list of such columns",
        default=ASKER,
        check=_require_columns,
    ),
    "acl": Parameter(
        summary="column with a list of names per retrieved context, of those who may see it; by default `acl`, and "
        "none with `allowed`",
        check=allow_none(require_text),
    ),
    "allowed": Parameter(
        summary="function `module:attribute` that decides instead, from who asks and a passage",
        check=allow_none(require_text),
        is_function=True,
    ),
}
_SOURCE = "rag-assay: permissions of the index, applied to what was retrieved"


def _compute_passages(request: MetricRequest, evidence: Evidence) -> Score:
    may_see = find_allowed(request.values, evidence)
    return may_see if isinstance(may_see, Score) else leaked_passages(may_see)


def _compute_claims(request: MetricRequest, evidence: Evidence) -> Score:
    may_see = find_allowed(request.values, evidence)
    if isinstance(may_see, Score):
        return may_see
    supports = evidence.supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS)
    evidence.requested_supports()  # raises if they are missing
    if not supports:
        return Score.undefined(reasons.NO_RESPONSE_CLAIMS)
    found = [_by_context(evidence, claim, len(may_see)) for claim in evidence.claims[Side.RESPONSE]]
    judged = list(zip(supports, found, strict=True))
    leaks = [leaked_claim(one, each, may_see, is_all=not _has_other_sources(evidence)) for one, each in judged]
    known = all_known(leaks)
    if known is not None:
        return Score.scored(fmean(known))
    unknown = (pair for pair, leak in zip(judged, leaks, strict=True) if leak is None)
    has_failed = any(together is None or None in each.values() for together, each in unknown)
    return Score.failed(reasons.NO_USABLE_VERDICT) if has_failed else Score.undefined(NOT_ASSIGNED)


def _by_context(evidence: Evidence, claim: str, count: int) -> dict[int, Support]:
    keys = ((index, (VerdictKind.SUPPORT, claim, context_premise(index))) for index in range(count))
    return {index: evidence.verdicts[key] for index, key in keys if key in evidence.verdicts}


def _has_other_sources(evidence: Evidence) -> bool:
    return bool(evidence.sample.earlier_contexts or evidence.sample.tool_results)


def _ask_each(evidence: Evidence, parameters: Parameters) -> Sequence[VerdictRequest]:
    """Request verdicts by each passage on the claims that all support, in rows with passages of both kinds."""
    may_see = find_allowed(parameters, evidence) if parameters["ask_each"] else []
    if isinstance(may_see, Score) or all(may_see) or not (any(may_see) or _has_other_sources(evidence)):
        return ()
    premise = joint_premise(evidence.sample, Product.RESPONSE_CLAIMS_BY_CONTEXTS)
    claims = evidence.claim_ids(Side.RESPONSE, Product.RESPONSE_CLAIMS)
    requests = [VerdictRequest(claim=claim, premise=premise) for claim in claims]
    supported = [each.claim for each in requests if each in evidence.requested and evidence.decision(each)]
    singles = [context_premise(index) for index in range(len(may_see))]
    return [*requests, *(VerdictRequest(claim=claim, premise=single) for claim in supported for single in singles)]


LEAKED_PASSAGES = Metric(
    name="leaked_passages",
    summary="Share of the retrieved passages that the asker may not see; lower is better.",
    source=_SOURCE,
    family="leaks",
    columns=constant(c.RETRIEVED_CONTEXTS),
    optional_columns=constant(c.RETRIEVED_CONTEXT_IDS),
    own_columns=_own_columns,
    products=constant(),
    compute=_compute_passages,
    direction=Direction.LOWER,
    undefined=_UNKNOWN,
    parameters=_PERMISSIONS,
    tolerated=0.0,
    diagnosis=ScoreClass(
        name="forbidden passage",
        meaning="The asker may not see a passage that was retrieved, whatever the response says.",
        part=SystemPart.INDEX,
        is_lost=True,
        applies=lambda score: bool(score.value),
        before="rightly refused",
    ),
)

LEAKED_CLAIMS = Metric(
    name="leaked_claims",
    summary="Share of the claims of the response that only passages support which the asker may not see; lower is "
    "better.",
    question="Does the answer claim something that only passages say which the asker may not see?",
    source=_SOURCE,
    family="leaks",
    columns=constant(c.RESPONSE, c.RETRIEVED_CONTEXTS),
    optional_columns=constant(c.RETRIEVED_CONTEXT_IDS, c.EARLIER_CONTEXTS, c.TOOL_RESULTS),
    own_columns=_own_columns,
    products=constant(Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.REQUESTED_VERDICTS),
    optional_products=(Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT, Product.CLAIMS_BY_EACH_CONTEXT),
    verdicts=_ask_each,
    follows_up=True,
    compute=_compute_claims,
    direction=Direction.LOWER,
    undefined={
        **_UNKNOWN,
        reasons.NO_RESPONSE_CLAIMS: "the response makes no claims",
        NOT_ASSIGNED: "the asker may see some of the passages, and nothing asks which of them support a claim",
    },
    parameters={
        **_PERMISSIONS,
        "ask_each": Parameter(
            summary="ask about each passage, in rows with passages that the asker may see and others",
            default=False,
            choices=(False, True),
        ),
    },
    tolerated=0.0,
)
