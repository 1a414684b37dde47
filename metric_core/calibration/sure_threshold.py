"""Thresholds above which a cascade accepts the cheaper judge's verdict."""

from dataclasses import dataclass

from metric_core.evidence import ALL_CONTEXTS
from metric_core.records import Side, VerdictKind


@dataclass(frozen=True, slots=True)
class SureThreshold:
    """A threshold above which the verdict of the cheaper judge is accepted, and the labels it follows from.

    Args:
        judge: Digest of the judge's fingerprints.
        writer: Fingerprint of the judge that wrote the claims.
        about: Verdicts that it holds for, as `describe_verdicts` names them.
        metric: Metric that the labels are of.
        created: Time at which it was measured, in ISO 8601.
        most: Accepted share of answers that people disagree with.
        least: Least probability of the judge's own label.
        share: Share of the verdicts that the judge answers alone.
        labels: Number of labels of such answers.
        wrong: Number of these that people disagree with.
        limit: Upper limit of the share that they disagree with, with a confidence of 95 %.
    """

    judge: str
    writer: str
    about: str
    metric: str
    created: str
    most: float
    least: float
    share: float
    labels: int
    wrong: int
    limit: float


def describe_verdicts(kind: str, claim_id: str, premise: str) -> str:
    """Return which verdicts a verdict is one of: what is judged, and by what. Thresholds hold for one such set.

    >>> describe_verdicts("support", "response:0", "contexts"), describe_verdicts("support", "reference:1", "context:2")
    ('response claims by all contexts', 'reference claims by each context')
    >>> describe_verdicts("support", "response:0", "contexts:0,1"), describe_verdicts("usefulness", "", "context:0")
    ('response claims by some contexts', 'usefulness by each context')
    """
    side, (by, _, numbers) = claim_id.partition(":")[0], premise.partition(":")
    if by == ALL_CONTEXTS:
        by = f"{'some' if numbers else 'all'} contexts"
    elif numbers:
        by = f"each {by}"
    judged = "key points" if side == Side.KEY_POINT else f"{side} claims" if side else ""
    of = "" if kind == VerdictKind.SUPPORT else f"{kind.replace('_', ' ')}{' of ' if side else ''}"
    return f"{of}{judged} by {by}"
