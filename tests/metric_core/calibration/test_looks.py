"""Limits that hold over all looks at a growing sample of labels."""

import numpy as np
import pytest

from metric_core.calibration.looks import LookedAt, tail_of_look
from metric_core.calibration.sampled_labels import SampledLabels, estimate_label_mean
from metric_core.calibration.sure_answers import measure_sure_answers


def test_limits_widen_with_each_look() -> None:
    labels = np.array([1.0, 0.0] * 20 + [np.nan] * 60)
    once = estimate_label_mean(SampledLabels([str(n) for n in range(100)], np.resize([1.0, 0.0], 100), labels)).estimate
    lows = [LookedAt.from_estimate(once, look).interval().low for look in (1, 2, 5)]
    assert once.interval().low > lows[0] > lows[1] > lows[2]
    first = LookedAt.from_estimate(once, 1)
    assert first.value == once.value
    assert first.p_at_most(0.3) == pytest.approx(once.p_at_most(0.3) / 0.6, rel=0.01)


@pytest.mark.simulation
def test_a_gate_and_a_cascade_that_are_looked_at_six_times_seldom_err() -> None:
    generator = np.random.default_rng(3)
    rows = [f"{number:03}" for number in range(600)]
    passed = answered = once = 0
    for _ in range(150):
        truth = (generator.random(600) < 0.7).astype(float)
        scores = np.where(generator.random(600) < 0.85, truth, 1 - truth)
        order = generator.permutation(600)
        sureness = generator.random(600)
        wrong = (generator.random(600) < np.where(sureness > 0.4, 0.0, 0.3)).astype(float)
        outcomes = []
        for look, size in enumerate(range(50, 201, 30), start=1):
            labels, known = np.full(600, np.nan), np.full(600, np.nan)
            labels[order[:size]], known[order[:size]] = truth[order[:size]], wrong[order[:size]]
            estimate = estimate_label_mean(SampledLabels(rows, scores, labels)).estimate
            point = measure_sure_answers(sureness, known, None, tail_of_look(0.05, look)).choose(0.1)
            outcomes.append(
                (
                    LookedAt.from_estimate(estimate, look).strict_limits(0.05).low > 0.7,
                    point is not None and point.share > 0.91,
                    estimate.strict_limits(0.05).low > 0.7,
                )
            )
        found = [any(each) for each in zip(*outcomes, strict=True)]
        passed, answered, once = passed + found[0], answered + found[1], once + found[2]
    assert passed <= 12
    assert answered <= 12
    assert once > passed
