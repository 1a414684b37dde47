"""Means of labels and scores beside those of GLIDE, where that package is installed (`pip install glide-py`)."""

import numpy as np
import pytest

from metric_core.calibration.estimates import RectifiedEstimate
from metric_core.calibration.sampled_labels import SampledLabels, estimate_label_mean

estimators = pytest.importorskip("glide.estimators", reason="pip install glide-py, which needs Python 3.12")

ROWS = 1000


@pytest.mark.simulation
@pytest.mark.parametrize("count", [50, 100, 200])
@pytest.mark.parametrize("mean", [0.7, 0.92])
def test_the_mean_is_that_of_glide_and_its_interval_no_narrower(mean: float, count: int) -> None:
    rng = np.random.default_rng([7, count, round(100 * mean)])
    for _ in range(5):
        truth = (rng.random(ROWS) < mean) * 1.0
        scores = np.where(rng.random(ROWS) < np.where(truth > 0, 0.98, 0.95), truth, 1 - truth)
        labels, chosen = np.full(ROWS, np.nan), rng.choice(ROWS, count, replace=False)
        labels[chosen] = truth[chosen]

        ours = estimate_label_mean(SampledLabels([str(row) for row in range(ROWS)], scores, labels)).estimate

        assert isinstance(ours, RectifiedEstimate)
        weighted = scores * (ours.score / scores.mean())
        # GLIDE averages the scores of unlabelled rows, so all rows are given as unlabelled ones too.
        found = estimators.PPIMeanEstimator().estimate(
            np.append(truth[chosen], np.full(ROWS, np.nan)), np.append(weighted[chosen], weighted), power_tuning=False
        )
        assert ours.value == pytest.approx(found.mean, abs=1e-9)
        theirs, limits = found.confidence_interval, ours.interval()
        assert limits.high - limits.low >= 0.95 * (min(theirs.upper_bound, 1.0) - theirs.lower_bound)
