"""Declare the classes of a diagnosis, in the order in which they are tried.

The order follows the pipeline: a refusal first, then what retrieval did, then what the generator did with it. A row
belongs to the first class whose condition holds. A condition that needs verdicts which the run has not asked for does
not hold; the diagnosis names what it lacked. Where a run judges key points, the vital ones take the place of the claims
of the reference.

Sources: the failure points of Barnett et al., "Seven Failure Points When Engineering a Retrieval Augmented Generation
System" (2024), and the checks of claims of Ru et al., "RAGChecker" (2024).
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from metric_core import reasons
from metric_core.columns import RESPONSE
from metric_core.declarations.diagnosis_class import DiagnosisClass, ScoreClass, SystemPart
from metric_core.declarations.metric import MetricRequest
from metric_core.diagnosis.row_facts import RowFacts
from metric_core.diagnosis.three_valued import Fact, both, negate
from metric_core.errors import PluginError
from metric_core.evidence import Evidence
from metric_core.records import Score, Status
from metric_core.refusals.refusal_kinds import RefusalKind
from metric_core.stages import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class FactClass(DiagnosisClass):
    """A class of rows that facts about them decide, which every run has."""

    applies: Callable[[RowFacts], Fact]
    reads: tuple[Product, ...] = ()


RIGHTLY_REFUSED = FactClass(
    name="rightly refused",
    meaning="The response declines to answer, and there is no answer: the reference says so, or, without a reference, "
    "the passages do not suffice or no sentence of them helps.",
    applies=lambda facts: (
        facts.declines and (facts.reference_declines if facts.has_points else negate(facts.has_answer))
    ),
    reads=(Product.SENTENCE_RELEVANCE,),
)
OVER_REFUSED = FactClass(
    name="over-refused",
    meaning="The response declines to answer, although the passages support a claim of the reference or, without a "
    "reference, they suffice or a sentence of theirs helps.",
    applies=lambda facts: facts.declines and facts.has_answer,
    reads=(Product.REFERENCE_CLAIMS_BY_CONTEXTS, Product.SENTENCE_RELEVANCE),
    part=SystemPart.GENERATOR,
    is_lost=True,
)
PASSAGE_MISSING = FactClass(
    name="passage missing",
    meaning="The passages do not support a claim of the reference, and the response declines, lacks the same claim, or "
    "makes a claim that the passages do not support; or nothing was retrieved. Passages that do not suffice to answer "
    "the question count where no claims of a reference are judged.",
    applies=lambda facts: negate(facts.has_answer) if facts.declines else facts.missing_points,
    reads=(
        *(Product.REFERENCE_CLAIMS_BY_CONTEXTS, Product.REFERENCE_CLAIMS_BY_RESPONSE),
        Product.RESPONSE_CLAIMS_BY_CONTEXTS,
    ),
    part=SystemPart.INDEX,
    is_lost=True,
)
MISLED = FactClass(
    name="misled by a passage",
    meaning="The response lacks a claim of the reference, and makes a claim about the question that the reference does "
    "not support, but a passage does which supports no claim of the reference.",
    applies=lambda facts: facts.misleading_claims,
    reads=(
        *(Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.CLAIMS_BY_EACH_CONTEXT),
        Product.REFERENCE_CLAIMS_BY_RESPONSE,
    ),
    part=SystemPart.INDEX,
    is_lost=True,
)
CONTRADICTED = FactClass(
    name="contradicted",
    meaning="The response makes claims that neither passages nor reference support, and most of them are about a "
    "matter on which a sentence of the passages or of the reference says otherwise.",
    applies=lambda facts: facts.contrary_claims,
    reads=(
        *(Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.RESPONSE_CLAIMS_BY_REFERENCE),
        Product.REFERENCE_CLAIMS_BY_RESPONSE,
    ),
    part=SystemPart.GENERATOR,
    is_lost=True,
)
UNSUPPORTED = FactClass(
    name="unsupported",
    meaning="The response makes a claim that the passages do not support, on a matter that they do not mention.",
    applies=lambda facts: facts.unsupported_claims,
    reads=(Product.RESPONSE_CLAIMS_BY_CONTEXTS,),
    part=SystemPart.GENERATOR,
    is_lost=True,
)
PASSAGE_IGNORED = FactClass(
    name="passage ignored",
    meaning="The passages support a claim of the reference that the response lacks, or suffice to answer the question "
    "where that is not judged.",
    applies=lambda facts: facts.ignored_points,
    reads=(Product.REFERENCE_CLAIMS_BY_CONTEXTS, Product.REFERENCE_CLAIMS_BY_RESPONSE),
    part=SystemPart.GENERATOR,
    is_lost=True,
)
SHOULD_HAVE_REFUSED = FactClass(
    name="should have refused",
    meaning="The passages do not suffice to answer the question, and the response answers all the same, but does not "
    "state all that the reference says.",
    applies=lambda facts: facts.is_unfounded,
    reads=(Product.RATINGS,),
    part=SystemPart.GENERATOR,
    is_lost=True,
)
BADLY_RANKED = FactClass(
    name="badly ranked",
    meaning="Nothing is wrong with the answer, but the first passage is useless and a later one is useful.",
    applies=lambda facts: both(facts.is_known_good, facts.useful_passage_is_lower),
    reads=(Product.USEFULNESS_FOR_REFERENCE, Product.USEFULNESS_FOR_RESPONSE),
    part=SystemPart.INDEX,
)
ANSWERED = FactClass(
    name="answered",
    meaning="The response has all claims of the reference, its own claims have support, or both, and no other class "
    "applies.",
    applies=lambda facts: facts.is_known_good,
    reads=(Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.REFERENCE_CLAIMS_BY_RESPONSE),
)

CLASSES = (
    *(RIGHTLY_REFUSED, OVER_REFUSED, PASSAGE_MISSING, MISLED, CONTRADICTED, UNSUPPORTED, PASSAGE_IGNORED),
    *(SHOULD_HAVE_REFUSED, BADLY_RANKED, ANSWERED),
)
"""The classes of every run, in the order in which they are tried."""

UNDIAGNOSED = "undiagnosed"
"""Name of the rows without a class in counts and tables."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of a row.

    Args:
        name: Name of the class; None if the row cannot be diagnosed.
        reason: Reason why it cannot; None otherwise.
        lacking: Products that could have shown another fault and that the run has not asked for.
        declines: True if the response declines to answer.
        refusal_kind: Kind of refusal that a response is which declines; None if its form is of no kind.
        is_judged_refusal: True if the judge's answer says whether it declines, and not the forms of refusals.
    """

    name: str | None
    reason: str | None = None
    lacking: tuple[Product, ...] = ()
    declines: bool = False
    refusal_kind: RefusalKind | None = None
    is_judged_refusal: bool = False


def classes_of(requests: Iterable[MetricRequest]) -> tuple[DiagnosisClass, ...]:
    """Return the classes of a run with some metrics, in the order in which they are tried.

    >>> [each.name for each in classes_of([])][0]
    'rightly refused'

    Raises:
        PluginError: The class of a metric has the name of another one, or is to be tried before one that is not known.
    """
    ordered: list[DiagnosisClass] = [*CLASSES]
    places = {each.name: each for each in CLASSES}
    for metric in (request.metric for request in requests):
        own = metric.diagnosis
        if own is None or own in ordered:
            continue
        if own.before not in places or own.name in {UNDIAGNOSED, *(each.name for each in ordered)}:
            wanted = f"wanted another name, before one of {', '.join(places)}"
            raise PluginError(f"{metric.name} has the class {own.name!r} before {own.before!r}, {wanted}")
        ordered.insert(ordered.index(places[own.before]), own)
    return tuple(ordered)


def diagnose(evidence: Evidence, products: frozenset[Product], requests: Iterable[MetricRequest] = ()) -> Diagnosis:
    """Return the diagnosis of a row.

    Args:
        products: Products that the run has asked for, with those that they are computed from.
        requests: Metrics of the run that come with a class.

    >>> from metric_core.records import Sample, Side, VerdictKind
    >>> row = Sample(response="It opens at ten.", retrieved_contexts=("It opens at nine.",), reference="At nine.")
    >>> claims = {Side.RESPONSE: {"response:0": "It opens at ten."}}
    >>> evidence = Evidence(row, claims, {(VerdictKind.SUPPORT, "response:0", "contexts"): 0.0})
    >>> diagnose(evidence, frozenset({Product.RESPONSE_CLAIMS, Product.RESPONSE_CLAIMS_BY_CONTEXTS})).name
    'contradicted'
    >>> diagnose(evidence, frozenset()).reason
    'lacks verdicts: response claims by all contexts, reference claims by response'
    """
    response = evidence.sample.response
    if response is None or not response.strip():
        return Diagnosis(None, reasons.missing_column(RESPONSE) if response is None else reasons.empty_column(RESPONSE))
    facts, requests = RowFacts(evidence, products), tuple(requests)
    scores = [(request.metric.diagnosis, request.score(evidence)) for request in requests]
    found = _first(classes_of(requests), facts, scores)
    return Diagnosis(
        None if found is None else found.name,
        _explain(facts, scores) if found is None else None,
        tuple(facts.lacking),
        declines=facts.declines,
        refusal_kind=facts.refusal_kind,
        is_judged_refusal=facts.is_judged_refusal,
    )


def _first(
    classes: Iterable[DiagnosisClass], facts: RowFacts, scores: Collection[tuple[ScoreClass | None, Score]]
) -> DiagnosisClass | None:
    for each in classes:
        if isinstance(each, FactClass):
            is_good = not each.is_lost and each is not RIGHTLY_REFUSED
            if is_good and (facts.declines or _has_failed(facts, scores) or facts.lost_points):
                return None  # a fault that is not known cannot be excluded
            if each.applies(facts):
                return each
        elif any(own.applies(score) for own, score in scores if own is each):
            return each
    return None


def _has_failed(facts: RowFacts, scores: Iterable[tuple[ScoreClass | None, Score]]) -> bool:
    return bool(facts.failed) or any(score.status is Status.FAILED for _, score in scores)


def _explain(facts: RowFacts, scores: Iterable[tuple[ScoreClass | None, Score]]) -> str:
    """Return why a row has no class."""
    if _has_failed(facts, scores):
        return reasons.NO_USABLE_VERDICT
    if facts.makes_claims is False and not facts.declines and not facts.lost_points:
        return reasons.NO_RESPONSE_CLAIMS
    wanted: tuple[Product, ...] = (Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.REFERENCE_CLAIMS_BY_RESPONSE)
    if facts.declines or facts.lost_points:
        wanted = (Product.REFERENCE_CLAIMS_BY_CONTEXTS if facts.has_reference else Product.SENTENCE_RELEVANCE,)
    lacking = [product for product in wanted if product in facts.lacking]
    return f"lacks verdicts: {', '.join(lacking or wanted)}"
