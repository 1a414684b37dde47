"""Find out which verdicts a score is the mean of, so that labels of single verdicts say something about the score."""

from collections.abc import Mapping
from dataclasses import replace

from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import Evidence
from metric_core.records import Support, VerdictKey

_ROUNDING = 1e-9


def verdict_weights(request: MetricRequest, evidence: Evidence) -> dict[VerdictKey, float] | None:
    """Return the weight of each verdict that a score is the mean of; None if the score is not such a mean.

    The metric itself says so: its scores with all verdicts 0, with one of them 1, and with the judge's own.

    Returns:
        Weights above 0 with a sum of 1, without the verdicts that the metric does not read.

    >>> from metric_core.metrics.registry import parse_request
    >>> from metric_core.records import Sample, Side, VerdictKind
    >>> keys = [(VerdictKind.SUPPORT, f"response:{number}", "contexts") for number in range(2)]
    >>> row = Evidence(
    ...     Sample(response="It rains. It snows.", retrieved_contexts=("It rains.",)),
    ...     claims={Side.RESPONSE: {"response:0": "It rains.", "response:1": "It snows."}},
    ...     verdicts=dict(zip(keys, (1.0, 0.0))),
    ... )
    >>> list(verdict_weights(parse_request("faithfulness"), row).values())
    [0.5, 0.5]
    """
    verdicts: Mapping[VerdictKey, Support] = evidence.verdicts
    nothing: dict[VerdictKey, Support] = dict.fromkeys(verdicts, 0.0)

    def score(given: Mapping[VerdictKey, Support]) -> float | None:
        return request.score(replace(evidence, verdicts=given, computed={})).value

    if score(nothing) != 0:
        return None
    alone = {key: score({**nothing, key: 1.0}) for key in verdicts}
    weights = {key: value for key, value in alone.items() if value is not None and value > 0}
    is_whole = abs(sum(weights.values()) - 1) < _ROUNDING and None not in alone.values()
    actual = score(verdicts)
    if not is_whole or actual is None:
        return None
    expected = sum(weight * (verdicts[key] or 0.0) for key, weight in weights.items())
    return weights if abs(actual - expected) < _ROUNDING else None
