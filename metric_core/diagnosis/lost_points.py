"""Find the key points that a response lacks, and the part of the system that lost each."""

from dataclasses import dataclass

from metric_core.declarations.diagnosis_class import SystemPart
from metric_core.evidence import ALL_CONTEXTS, BY_RESPONSE, Evidence
from metric_core.records import Side, VerdictKind


@dataclass(frozen=True, slots=True)
class LostPoint:
    """A key point that a response does not state, or only in part.

    Args:
        claim_id: Id of the key point.
        part: The generator if the retrieved contexts support the point, the index if they do not; None if unknown.
    """

    claim_id: str
    part: SystemPart | None


def find_lost_points(evidence: Evidence) -> tuple[LostPoint, ...]:
    """Return the key points that the response of a row lacks, vital and okay ones, in their order.

    >>> from metric_core.records import Sample
    >>> points = {f"key_point:{i}": "" for i in range(3)}
    >>> by_response = {(VerdictKind.SUPPORT, point, "response"): 0.0 for point in points}
    >>> by_contexts = {(VerdictKind.SUPPORT, f"key_point:{i}", "contexts"): float(i) for i in range(2)}
    >>> row = Sample(retrieved_contexts=("It rains.",))
    >>> found = find_lost_points(Evidence(row, {Side.KEY_POINT: points}, by_response | by_contexts))
    >>> [point.part and str(point.part) for point in found]
    ['index', 'generator', None]
    """
    return tuple(
        LostPoint(point, _part(evidence, point))
        for point in evidence.claims.get(Side.KEY_POINT, {})
        if evidence.verdicts.get((VerdictKind.SUPPORT, point, BY_RESPONSE)) == 0
    )


def _part(evidence: Evidence, point: str) -> SystemPart | None:
    contexts = evidence.sample.retrieved_contexts
    if contexts is not None and not any(text.strip() for text in contexts):
        return SystemPart.INDEX
    is_found = evidence.verdicts.get((VerdictKind.SUPPORT, point, ALL_CONTEXTS))
    if is_found is None:
        return None
    return SystemPart.GENERATOR if is_found else SystemPart.INDEX
