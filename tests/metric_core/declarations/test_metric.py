"""Requests: parameters are checked and completed, keys are readable, a gap is an outcome."""

import pytest

from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.declarations.parameter_checks import require_number_in, require_positive_integer
from metric_core.errors import MetricParameterError
from metric_core.evidence import Evidence
from metric_core.metrics.registry import resolve
from metric_core.prompts.judge_questions import ChoiceQuestion, RatingRequest
from metric_core.question_kinds import QuestionKind
from metric_core.records import Sample, Score
from metric_core.stages import Product

ASKED = [RatingRequest("only", ChoiceQuestion(QuestionKind.ASPECT, {}, ("1", "0")))]


def compute(request: MetricRequest, evidence: Evidence) -> Score:
    return Score.scored(len(evidence.ratings_of(request.key)))


TOY = Metric(
    name="toy",
    summary="Counts ratings.",
    source="here",
    family="toy",
    columns=constant("response"),
    products=constant(Product.RATINGS),
    compute=compute,
    undefined={},
    parameters={
        "unit": Parameter(summary="what is counted", default="word", choices=("word", "line")),
        "share": Parameter(summary="how much", default=0.5, check=require_number_in(0, 1)),
        "times": Parameter(summary="how often", default=1, check=require_positive_integer),
        "words": Parameter(summary="long or structured", default=None),
    },
    check=lambda parameters: "fewer lines" if parameters["unit"] == "line" and parameters["times"] > 2 else None,
    ratings=lambda _sample, _parameters: ASKED,
)


def test_parameters_are_completed() -> None:
    assert TOY.request({"times": 2}).parameters == {"unit": "word", "share": 0.5, "times": 2, "words": None}


def test_wrong_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"colour": 1}, "toy has no parameter 'colour'; it has: unit, share, times, words"),
        ({"unit": "page"}, "toy: unit must be one of 'word', 'line', got 'page'"),
        ({"share": 1.5}, "toy: share must be a number from 0 to 1, got 1.5"),
        ({"share": float("nan")}, "share must be a number"),
        ({"share": True}, "share must be a number"),
        ({"share": 10**400}, "share must be a number"),
        ({"times": 0}, "times must be a whole number of at least 1, got 0"),
        ({"unit": "line", "times": 3}, "toy needs fewer lines, got {'unit': 'line', 'times': 3}"),
    ]
    for parameters, message in cases:
        with pytest.raises(MetricParameterError, match=message):
            TOY.request(parameters)


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ({}, "toy"),
        ({"times": 1}, "toy"),
        ({"times": 2, "unit": "line"}, "toy(unit=line,times=2)"),
        ({"words": ["a", "b"]}, 'toy(words=["a","b"])'),
        ({"words": "x" * 40}, "toy"),
        ({"words": {"a": 1}}, "toy"),
    ],
)
def test_a_key_shows_short_parameters_that_differ(parameters: dict[str, object], key: str) -> None:
    assert TOY.request(parameters).key == key
    assert TOY.request(parameters, key="mine").key == "mine"


def test_a_row_without_the_column_is_undefined_and_asks_nothing() -> None:
    missing = Score.undefined("no response")
    assert TOY.request().score(Evidence(Sample())) == missing
    assert TOY.request().rating_requests(Sample()) == missing


def test_a_row_with_the_column_is_asked_about_and_scored() -> None:
    assert TOY.request().rating_requests(Sample(response="")) == ASKED
    assert TOY.request().score(Evidence(Sample(response=""))) == Score.scored(0)


def test_the_outcome_of_a_gap_is_the_score() -> None:
    gap = Score.failed("the server is down")
    assert TOY.request().score(Evidence(Sample(response="x"), gaps={Product.RATINGS: gap})) == gap


def test_a_list_from_a_file_is_the_same_as_the_default_tuple() -> None:
    request = resolve("answer_correctness").request({"weights": [0.75, 0.25]})
    assert request.key == "answer_correctness"
    assert request.parameters["weights"] == (0.75, 0.25)
