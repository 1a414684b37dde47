"""Choose the verdicts that show whether the passages that a claim cites support it, and evaluate them.

Verdicts by single passages come first. All cited passages together are judged only where none supports the claim alone,
and all but one only where all together do; so most claims need no verdict but those by their passages alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from metric_core.claims.cited_contexts import cited_contexts, first_number
from metric_core.evidence import ALL_CONTEXTS, Evidence, context_premise
from metric_core.joint_contexts import contexts_premise
from metric_core.records import Sample, Side, Support, VerdictRequest
from metric_core.stages import Product

_PAIR = 2
"""Of so many contexts, each is the rest without the other, so that no further verdict is needed."""


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim, or a sentence, with what it cites.

    Args:
        claim: Its id.
        sentence: Index of its sentence in the response; None if no sentence resembles it.
        citations: Label -> indices of the contexts that it names; none for a label that names no context.
        has_levels: True if it is judged in three levels.
    """

    claim: str
    sentence: int | None
    citations: Mapping[str, tuple[int, ...]]
    has_levels: bool = False

    @property
    def contexts(self) -> tuple[int, ...]:
        """The indices of all contexts that it cites, in ascending order."""
        return tuple(sorted({index for named in self.citations.values() for index in named}))


def read_cited_claims(
    evidence: Evidence, side: Side, product: Product, *, has_levels: bool = False
) -> list[CitedClaim]:
    """Return the claims or sentences of the response with what they cite.

    The numbers of all markers of the response say whether it counts the contexts from 0 or from 1.

    Args:
        evidence: Evidence of the row, with the sentences of the response.
        has_levels: True to judge them in three levels.
    """
    ids = evidence.claim_ids(side, product)
    sentences = evidence.claim_ids(Side.RESPONSE_SENTENCE, Product.RESPONSE_SENTENCES)
    places = [(claim, evidence.place(claim)) for claim in dict.fromkeys((*ids, *sentences))]
    labels = {claim: place.citations if place else () for claim, place in places}
    sentence_of = {claim: place.sentence if place else None for claim, place in places}
    first = first_number((label for found in labels.values() for label in found), evidence.sample)
    return [
        CitedClaim(
            claim,
            sentence_of[claim],
            {label: cited_contexts((label,), evidence.sample, first) for label in labels[claim]},
            has_levels,
        )
        for claim in ids
    ]


@dataclass(frozen=True, slots=True)
class ClaimAttribution:
    """Verdicts on one claim by the contexts that it cites, as far as they are wanted and known.

    Args:
        parts: The contexts that it cites which are not blank, and of equal ones the first.
        alone: Context -> verdict on the claim by it alone.
        together: Verdict by all parts; None if it is not wanted, because one context supports the claim alone, or there
            are no others.
        rests: Context -> verdict by all parts but it, where they are wanted.
        supported: True if the cited contexts support the claim; None if that is not known.
    """

    claim: CitedClaim
    parts: tuple[int, ...]
    alone: Mapping[int, VerdictRequest]
    together: VerdictRequest | None = None
    rests: Mapping[int, VerdictRequest] = field(default_factory=dict)
    supported: bool | None = None

    @property
    def requests(self) -> tuple[VerdictRequest, ...]:
        """The verdicts that are wanted, known or not."""
        together = () if self.together is None else (self.together,)
        return (*self.alone.values(), *together, *self.rests.values())


def attribute(claim: CitedClaim, evidence: Evidence, *, precisely: bool = False) -> ClaimAttribution:
    """Return the verdicts that show whether the contexts that a claim cites support it, given those that are known.

    Args:
        evidence: Evidence of the row, with the verdicts that have been requested.
        precisely: True to find out which of the contexts are needed, too.
    """
    parts = distinct_contexts(claim.contexts, evidence.sample)
    alone = {index: _request(claim, (index,), evidence.sample) for index in claim.contexts}
    verdicts = _known(alone.values(), evidence)
    if verdicts is None or 1 in verdicts or None in verdicts:
        supported = True if verdicts is not None and 1 in verdicts else None
        return ClaimAttribution(claim, parts, alone, supported=supported)
    if len(parts) < _PAIR:
        return ClaimAttribution(claim, parts, alone, supported=False)
    together = _request(claim, parts, evidence.sample)
    verdict = (_known([together], evidence) or [None])[0]
    if verdict != 1:
        return ClaimAttribution(claim, parts, alone, together, supported=None if verdict is None else False)
    rests = {}
    if precisely and len(parts) > _PAIR:
        others = {index: [part for part in parts if part != index] for index in parts}
        rests = {index: _request(claim, rest, evidence.sample) for index, rest in others.items()}
    return ClaimAttribution(claim, parts, alone, together, rests, supported=True)


def distinct_contexts(indices: Iterable[int], sample: Sample) -> tuple[int, ...]:
    """Return the contexts that are not blank, and of equal ones the first.

    >>> distinct_contexts([0, 1, 2], Sample(retrieved_contexts=("It rains.", " ", "It rains.")))
    (0,)
    """
    contexts = sample.retrieved_contexts or ()
    texts: dict[str, int] = {}
    for index in indices:
        if contexts[index].strip():
            texts.setdefault(contexts[index], index)
    return tuple(texts.values())


def other_contexts(claim: CitedClaim, sample: Sample) -> tuple[VerdictRequest, ...]:
    """Return the verdicts on a claim by each context that it does not cite."""
    count = len(sample.retrieved_contexts or ())
    return tuple(_request(claim, (index,), sample) for index in range(count) if index not in claim.contexts)


def support_of(attribution: ClaimAttribution, supports: Mapping[VerdictRequest, Support]) -> Support:
    """Return the support of a claim by the contexts that it cites together; None if a failed verdict leaves it open.

    It is the highest support that the verdicts give: a passage that supports the claim alone supports it with others.
    """
    alone = [supports.get(request) for request in attribution.alone.values()]
    if attribution.together is not None:
        alone.append(supports.get(attribution.together))
    if attribution.supported is None:
        return None
    return max((support for support in alone if support is not None), default=0.0)


def need_of(index: int, attribution: ClaimAttribution, supports: Mapping[VerdictRequest, Support]) -> Support:
    """Return whether a claim needs a context that it cites: it supports the claim alone, or the others do not.

    With probabilities, the greater of both: p(alone), p(together) * (1 - p(others)).

    Args:
        index: Index of the context.
    """
    whole, alone = support_of(attribution, supports), supports.get(attribution.alone[index])
    if whole is None or alone is None or index not in attribution.parts:
        return None if whole is None else alone
    if index in attribution.rests:
        rest = supports.get(attribution.rests[index])
        return None if rest is None else max(alone, whole * (1 - rest))
    others = [supports.get(attribution.alone[other]) for other in attribution.parts if other != index]
    rest = max((support for support in others if support is not None), default=0.0)
    return max(alone, whole * (1 - rest))


def _request(claim: CitedClaim, indices: Sequence[int], sample: Sample) -> VerdictRequest:
    is_all = tuple(indices) == tuple(range(len(sample.retrieved_contexts or ())))
    together = ALL_CONTEXTS if is_all else contexts_premise(indices)
    premise = context_premise(indices[0]) if len(indices) == 1 else together
    return VerdictRequest(claim=claim.claim, premise=premise, has_levels=claim.has_levels)


def _known(requests: Iterable[VerdictRequest], evidence: Evidence) -> list[Support] | None:
    """Return the judge's verdicts on requests; None while one of them has not been requested."""
    wanted = list(requests)
    if not all(request in evidence.requested for request in wanted):
        return None
    return [evidence.decision(request) for request in wanted]
