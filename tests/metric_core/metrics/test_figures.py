"""Figures: the number of a column, whatever its size, and none that is missing or below 0."""

from math import inf
from typing import Any

import pytest

from metric_core.evidence import Evidence
from metric_core.metrics.figures import FIGURE, LATENCY, RETRIEVED
from metric_core.metrics.registry import default_suite
from metric_core.records import Sample, Status


def score_of(value: Any, metric: Any = LATENCY, **parameters: Any) -> tuple[float | None, str | None]:
    request = metric.request(parameters)
    extras = {request.parameters["column"]: value} if value is not None else {}
    score = request.score(Evidence(Sample(extras=extras)))
    assert (score.status is Status.SCORED) == (score.value is not None)
    return score.value, score.reason


@pytest.mark.parametrize("value", [0, 0.25, 1e9, 3])
def test_a_figure_is_the_number_of_its_column(value: float) -> None:
    assert score_of(value) == (value, None)
    assert score_of(value, FIGURE, column="queue_seconds") == (value, None)


def test_a_number_that_is_missing_or_below_zero_is_none() -> None:
    assert score_of(-1) == (None, "below 0")
    assert score_of(None) == (None, "no latency")
    assert score_of("fast")[0] is None


def test_figures_have_no_greatest_value_and_a_direction_unless_more_may_be_right() -> None:
    assert LATENCY.request().bounds == RETRIEVED.request().bounds == (0.0, inf)
    assert [str(LATENCY.direction), str(RETRIEVED.direction)] == ["lower", "neither"]
    request = RETRIEVED.request()
    assert request.score(Evidence(Sample(retrieved_contexts=("a", "b")))).value == 2


def test_figures_with_known_names_are_found_by_themselves() -> None:
    found = [each.key for each in default_suite({"latency", "cost", "seconds", "figure"})]
    assert found == ["cost", "latency"]
