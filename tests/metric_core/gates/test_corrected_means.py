"""Gate rules about bias-corrected means."""

import numpy as np
import pytest

from metric_core.calibration.sampled_labels import SampledLabels, estimate_label_mean
from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.corrected_means import CorrectedMean
from metric_core.gates.rules import AbsoluteRule, Check, Gate, JudgeRule, Outcome, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.pairs import ScoreColumns

CELLS = {f"row {number}": Score.scored(1) for number in range(40)}
COLUMNS = [ScoreColumns(metric="faithfulness", direction=Direction.HIGHER, a={}, b=CELLS)]


def label_rows(yes: int, no: int, span: tuple[float, float] = (0.0, 1.0)) -> CorrectedMean:
    rows = [str(number) for number in range(200)]
    labels = np.array([1.0] * yes + [0.0] * no + [np.nan] * (200 - yes - no))
    found = estimate_label_mean(SampledLabels(rows, np.ones(200), labels))
    assert found.estimate.value is not None
    return CorrectedMean(found.estimate, found.estimate.value, span, 200, found.labelled)


def check(threshold: Threshold, mean: CorrectedMean | None) -> Check:
    rule = AbsoluteRule("faithfulness", Statistic.CORRECTED, threshold)
    judge = JudgeRule(None, Threshold(0.6), 100)
    corrected = {} if mean is None else {"faithfulness": mean}
    result = check_gate(Gate(absolute=(rule,), judge=judge), COLUMNS, facts=GateFacts(corrected=corrected))
    return next(found for found in result.checks if found.rule.startswith("corrected"))


@pytest.mark.parametrize(
    ("bar", "outcome"), [(0.7, Outcome.PASSED), (0.85, Outcome.INCONCLUSIVE), (0.97, Outcome.FAILED)]
)
def test_a_rule_about_the_labels_passes_fails_or_waits(bar: float, outcome: Outcome) -> None:
    found = check(Threshold(bar), label_rows(26, 4))
    assert found.outcome is outcome
    assert found.observed == pytest.approx(26 / 30)
    binomtest = pytest.importorskip("scipy.stats").binomtest
    limit = binomtest(26, 30).proportion_ci(0.9, method="exact")
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((limit.low, limit.high))
    assert found.p == pytest.approx(binomtest(26, 30, bar, alternative="less").pvalue, abs=1e-6)


def test_grades_are_compared_on_their_own_scale() -> None:
    found = check(Threshold(4.0), label_rows(26, 4, (1.0, 5.0)))
    assert found.observed == pytest.approx(1 + 4 * 26 / 30)
    assert check(Threshold(3.0), label_rows(26, 4, (1.0, 5.0))).outcome is Outcome.PASSED
    assert check(Threshold(3.0, is_floor=False), label_rows(26, 4, (1.0, 5.0))).outcome is Outcome.FAILED


def test_without_a_corrected_mean_a_rule_is_inconclusive_and_says_why() -> None:
    none = check(Threshold(0.5), None)
    assert (none.outcome, none.rows) == (Outcome.INCONCLUSIVE, 0)
    assert "`assay label` draws one" in none.reason
