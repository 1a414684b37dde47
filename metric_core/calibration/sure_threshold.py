"""Thresholds above which a cascade accepts the cheaper judge's verdict."""

import math
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
        verdicts: Number of verdicts that `share` is of; 0 if it is not known.
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
    verdicts: int = 0

    def p_as_sure(self, alone: int, asked: int) -> float:
        """Return the p-value of "other verdicts are as often above the threshold as those that were labelled".

        It is one-sided, in the normal limit.

        Args:
            alone: Number of other verdicts above the threshold.
            asked: Number of other verdicts.

        >>> found = SureThreshold("", "", "", "", "", 0.1, 0.9, 0.6, 122, 4, 0.08, verdicts=800)
        >>> found.p_as_sure(590, 1000) > 0.1, found.p_as_sure(500, 1000) < 0.001
        (True, True)
        """
        if not self.verdicts or not asked:
            return 1.0
        share = (self.share * self.verdicts + alone) / (self.verdicts + asked)
        error = math.sqrt(share * (1 - share) * (1 / self.verdicts + 1 / asked))
        return math.erfc((self.share - alone / asked) / error / math.sqrt(2)) / 2 if error else 1.0


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
