"""Texts and pictures of the summary table."""

from typing import Any

import pytest

from metric_core.records import Direction, Score
from metric_core.statistics.summary import summarize
from tasks.documents.run.score_table import MetricScale, survey_cells
from tasks.documents.run.summary_view import DRAWING_WIDTH, metric_view, value_range
from tasks.record.run_record import MetricRecord
from tests.tasks.documents.test_score_table import cells_of


def view(scores: list[Score], **entry: Any) -> dict[str, Any]:
    complete: dict[str, Any] = {
        "key": "metric",
        "name": "metric",
        "summary": "what it is",
        "direction": "higher",
        "bounds": [0.0, 1.0],
        "parameters": {},
        "language_model": False,
        **entry,
    }
    summary = summarize(complete["key"], Direction(complete["direction"]), scores, complete["bounds"])
    rows = {str(i): {complete["key"]: score} for i, score in enumerate(scores)}
    metric = MetricRecord.model_validate(complete)
    distribution, scale = summary.distribution, MetricScale.of_metric(metric)
    ranges = {} if distribution is None else {metric.key: value_range(distribution, scale)}
    counts = survey_cells([cells_of(rows)], [scale], ranges, 0).histograms
    return metric_view(metric, summary, counts.get(metric.key, ()))


def values(*numbers: float) -> list[Score]:
    return [Score.scored(number) for number in numbers]


def test_numbers_become_texts() -> None:
    measured = view(values(0.25, 0.75))["measured"]
    assert (measured["mean"], measured["interval"]) == ("0.500", None)
    measured = view(values(*[0.25, 0.75] * 4))["measured"]
    low, high = map(float, measured["interval"])
    assert 0.25 < low < 0.4
    assert 0.6 < high < 0.75
    assert dict(measured["spread"])["median"] == "0.5"


def test_the_mean_lies_within_its_interval_within_the_drawing() -> None:
    measured = view(values(0.0, 0.2, 1.0))["measured"]
    assert 0 <= measured["low_x"] <= measured["mean_x"] <= measured["high_x"] <= DRAWING_WIDTH
    assert all(0 <= bar["x"] <= DRAWING_WIDTH for bar in measured["bars"])


def test_a_single_value_has_no_interval_and_no_deviation() -> None:
    measured = view(values(0.5))["measured"]
    assert measured["interval"] is None
    assert "standard deviation" not in dict(measured["spread"])
    assert measured["low_x"] == measured["mean_x"] == measured["high_x"]


@pytest.mark.parametrize(("direction", "tone"), [("higher", "good2"), ("lower", "bad2"), ("neither", "none")])
def test_colours_know_which_end_is_better(direction: str, tone: str) -> None:
    assert view(values(0.9, 0.9), direction=direction)["measured"]["tone"] == tone


def test_the_drawing_of_cosines_starts_at_zero_unless_one_is_negative() -> None:
    assert view(values(0.2, 0.4), bounds=[-1.0, 1.0])["measured"]["low"] == "0"
    assert view(values(-0.2, 0.4), bounds=[-1.0, 1.0])["measured"]["low"] == "-1"


@pytest.mark.parametrize(("numbers", "low", "high"), [((2, 8), "2", "8"), ((3, 3), "2.5", "3.5")])
def test_values_without_a_range_are_drawn_on_their_own(numbers: tuple[float, ...], low: str, high: str) -> None:
    measured = view(values(*numbers), bounds=None)["measured"]
    assert (measured["low"], measured["high"], measured["tone"]) == (low, high, "none")


def test_scales_are_never_mixed() -> None:
    found = view([Score.scored(1, "0-1"), Score.scored(5, "1-5"), Score.scored(3, "1-5")], bounds=None)
    assert found["measured"] is None
    assert [(scale["scale"], scale["count"], scale["mean"]) for scale in found["scales"]] == [
        ("0-1", 1, "1.000"),
        ("1-5", 2, "4.000"),
    ]


def test_categories_are_counted() -> None:
    found = view([Score.labelled("pass"), Score.labelled("fail"), Score.labelled("pass")], bounds=None)
    assert [(category["label"], category["count"]) for category in found["categories"]] == [("pass", 2), ("fail", 1)]


def test_a_metric_without_any_value_has_its_counts_and_reasons() -> None:
    found = view([Score.undefined("no claims"), Score.failed("no reply"), Score.failed("no reply")])
    assert found["measured"] is None
    assert found["counts"] == {"scored": 0, "undefined": 1, "failed": 2}
    assert found["reasons"] == [("no reply", 2), ("no claims", 1)]


def test_parameters_are_shown_as_texts() -> None:
    parameters = {"weights": [0.75, 0.25], "threshold": None, "rubrics": {"score1_description": "bad"}, "mode": "f1"}
    assert view(values(1), parameters=parameters)["parameters"] == [
        ("weights", "0.75, 0.25"),
        ("rubrics", "score1_description: bad"),
        ("mode", "f1"),
    ]


def test_long_names_may_break_at_their_joints() -> None:
    parts = view(values(1), key="factual_correctness(mode=f1)")["key_parts"]
    assert parts == ["factual_", "correctness", "(mode=", "f1)"]
