"""Numbers of labels: as many more as predicted make the interval half as wide."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from metric_core.calibration.estimates import Estimate
from metric_core.calibration.label_needs import (
    labels_to_decide,
    labels_to_halve,
    rows_to_reach,
)
from metric_core.calibration.sampled_labels import SampledLabels, estimate_label_mean
from metric_core.gates.corrected_means import CorrectedMean
from metric_core.gates.rules import Threshold
from metric_core.statistics.resampling import Floats, Interval


def judge(generator: np.random.Generator, labels: Floats) -> Floats:
    """A judge that is right on 90 % of good and on 75 % of bad rows."""
    right = generator.random(len(labels)) < np.where(labels > 0, 0.9, 0.75)
    return np.where(right, labels, 1 - labels)


def width(estimate: Estimate) -> float:
    interval: Interval = estimate.interval()
    return interval.high - interval.low


def estimate_from(truth: Floats, scores: Floats, order: NDArray[np.intp], labelled: int) -> Estimate:
    labels = np.full(len(truth), np.nan)
    labels[order[:labelled]] = truth[order[:labelled]]
    rows = [f"{number:04}" for number in range(len(truth))]
    return estimate_label_mean(SampledLabels(rows, scores, labels)).estimate


@pytest.mark.parametrize(
    ("count", "times"),
    [(200, 3), pytest.param(30, 25, marks=pytest.mark.simulation), pytest.param(200, 25, marks=pytest.mark.simulation)],
)
def test_as_many_labels_of_the_run_as_predicted_halve_its_interval(count: int, times: int) -> None:
    generator = np.random.default_rng(4)
    ratios = []
    for _ in range(times):
        truth = (generator.random(6000) < 0.7).astype(float)
        estimate = partial(estimate_from, truth, judge(generator, truth), generator.permutation(6000))
        more = labels_to_halve(estimate(count), count)
        assert more is not None
        ratios.append(width(estimate(count + more)) / width(estimate(count)))
    assert np.median(ratios) <= 0.55  # labels alone become prediction-powered, which is narrower still


def test_labels_that_decide_a_rule() -> None:
    sample = SampledLabels(
        [str(i) for i in range(400)], np.ones(400), np.array([1.0] * 36 + [0.0] * 4 + [np.nan] * 360)
    )
    estimate = estimate_label_mean(sample).estimate
    more = labels_to_decide(estimate, 40, 0.8, 0.95)
    assert more is not None
    assert 10 <= more <= 60
    assert estimate.strict_limits(0.05).low < 0.8
    exact = estimate_label_mean(
        SampledLabels([str(i) for i in range(2000)], np.ones(2000), np.array([1.0] * 90 + [0.0] * 10 + [np.nan] * 1900))
    ).estimate
    assert exact.strict_limits(0.05).low > 0.8
    mean = CorrectedMean(estimate, 0.9, (1.0, 5.0), 400, 40)
    assert mean.advise(Threshold(4.2), 0.95) == f"needs about {40 + more} labels (now 40) if the mean stays at 4.600"
    assert labels_to_decide(estimate, 40, estimate.value or 0.0, 0.95) is None


def test_rows_until_an_agreement_reaches_a_threshold() -> None:
    assert rows_to_reach(0.6, 0.3, 0.45, 66) == 264
    assert rows_to_reach(0.6, 0.3, 0.6, 66) is None
    assert rows_to_reach(0.6, 0.3, 0.2, 66) == 66
    assert rows_to_reach(0.61, 0.1, 0.609, 66) is None
