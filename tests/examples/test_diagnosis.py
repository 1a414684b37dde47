"""The planted faults of the examples get the right diagnosis if the judge knows the truth."""

import pytest

from benchmarks.diagnosis import Confusion, measure
from metric_core.diagnosis.classes import CLASSES, SHOULD_HAVE_REFUSED


@pytest.fixture(scope="module")
def truthful() -> Confusion:
    return measure(with_truth=True)


def test_a_judge_that_knows_the_truth_names_the_planted_faults(truthful: Confusion) -> None:
    assert truthful.balanced_accuracy >= 0.95
    assert min(truthful.recalls.values()) >= 0.9


def test_the_examples_have_rows_of_every_class(truthful: Confusion) -> None:
    assert set(truthful.recalls) == {each.name for each in CLASSES if each is not SHOULD_HAVE_REFUSED}
    assert sum(truthful.counts.values()) == 96
