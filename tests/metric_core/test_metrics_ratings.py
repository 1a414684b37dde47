"""Metrics over ratings: which questions they put to the judge, and how they read the answers."""

from collections.abc import Sequence
from typing import Any

import pytest

from metric_core import reasons
from metric_core.errors import MetricParameterError
from metric_core.evidence import Evidence
from metric_core.metrics._instructions import join_instructions
from metric_core.metrics.registry import resolve
from metric_core.metrics.rubrics import DEFAULT_RUBRICS, scale_of
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, RatingRequest, question_digest
from metric_core.question_kinds import QuestionKind
from metric_core.records import Rating, Sample, Score

SAMPLE = Sample(user_input="Why?", response="So.", retrieved_contexts=("a", "b"), reference="Thus.")
FAILED = Score.failed(reasons.NO_USABLE_RATING)


def ask(metric: str, sample: Sample = SAMPLE, **parameters: Any) -> Sequence[RatingRequest]:
    requests = resolve(metric).request(parameters).rating_requests(sample)
    assert not isinstance(requests, Score)
    return requests


def rate(metric: str, values: Sequence[str | float | None], sample: Sample = SAMPLE, **parameters: Any) -> Score:
    request = resolve(metric).request(parameters)
    return request.score(Evidence(sample, ratings={request.key: [Rating("any", value) for value in values]}))


def test_accuracy_is_asked_twice_with_the_answers_swapped() -> None:
    first, second = (request.question for request in ask("nv_accuracy"))
    assert first.texts == {"user_input": "Why?", "response": "So.", "reference": "Thus."}
    assert second.texts == {"user_input": "Why?", "response": "Thus.", "reference": "So."}
    assert (first.kind, second.kind) == (QuestionKind.ACCURACY_1, QuestionKind.ACCURACY_2)
    assert isinstance(first, ChoiceQuestion)
    assert first.labels == ("0", "2", "4")


@pytest.mark.parametrize(
    ("metric", "texts"),
    [
        ("nv_context_relevance", {"contexts": "a\nb", "user_input": "Why?"}),
        ("nv_response_groundedness", {"contexts": "a\nb", "response": "So."}),
    ],
)
def test_the_two_prompts_get_the_same_texts(metric: str, texts: dict[str, str]) -> None:
    first, second = ask(metric)
    assert first.question.texts == second.question.texts == texts
    assert first.question.kind != second.question.kind
    assert first.template != second.template


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["2", "1"], 0.75), ([" 2\n", None], 1.0), ([None, "1"], 0.5), ([2.0, "rating: 1"], 1.0), (["0", "3"], 0.0)],
)
def test_the_usable_ratings_are_averaged(values: list[str | float | None], expected: float) -> None:
    assert rate("nv_context_relevance", values).value == expected


def test_a_shortcut_asks_nothing_and_needs_no_judge() -> None:
    sample = Sample(response="b", retrieved_contexts=("a", "b"))
    assert resolve("nv_response_groundedness").request().rating_requests(sample) == Score.scored(1.0)
    assert rate("nv_response_groundedness", [], sample) == Score.scored(1.0)


def test_an_aspect_is_voted_on_an_odd_number_of_times() -> None:
    (request,) = ask("aspect_critic", definition="Is it rude?", name="rudeness", strictness=2)
    question = request.question
    assert isinstance(question, ChoiceQuestion)
    assert (question.votes, question.labels) == (3, ("1", "0"))
    assert question.instructions == {"name": "rudeness", "definition": "Is it rude?"}
    assert set(question.texts) == {"contexts", "user_input", "response", "reference"}


def test_an_aspect_of_a_whole_conversation_is_judged_without_its_reference() -> None:
    sample = Sample(conversation="User: Why?\nAssistant: So.", reference="Thus.")
    (request,) = ask("aspect_critic", sample, definition="Is it rude?")
    assert request.question.texts == {"conversation": "User: Why?\nAssistant: So."}


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (["1", "0", "1"], Score.scored(1)),
        (["1", None, "1"], Score.scored(1)),
        (["1", None, "0"], FAILED),
        (["1", "7", "yes"], FAILED),
        ([], FAILED),
    ],
)
def test_a_failed_vote_is_not_a_vote_against(votes: list[str | float | None], expected: Score) -> None:
    assert rate("aspect_critic", votes, definition="Is it rude?", strictness=3) == expected


def test_few_whole_numbers_and_categories_are_choices() -> None:
    (numbers,) = ask("discrete_criteria", definition="How clear?", allowed_values=[1, 2, 3], strictness=3)
    assert isinstance(numbers.question, ChoiceQuestion)
    assert (numbers.question.kind, numbers.question.labels) == (QuestionKind.CRITERIA_INTEGER, ("1", "2", "3"))
    assert numbers.question.votes == 3
    (categories,) = ask("discrete_criteria", definition="Fine?", allowed_values=["pass", "fail"])
    assert categories.question.kind is QuestionKind.CRITERIA_CATEGORY


@pytest.mark.parametrize("allowed", [None, list(range(21))])
def test_other_whole_numbers_are_written_once_a_vote(allowed: list[int] | None) -> None:
    requests = ask("discrete_criteria", definition="How clear?", allowed_values=allowed, strictness=3)
    assert all(isinstance(request.question, GenerateQuestion) for request in requests)
    assert len({request.template for request in requests}) == 3
    assert len({question_digest(request.question) for request in requests}) == 3


def test_discrete_values_must_be_allowed() -> None:
    cases: list[tuple[dict[str, Any], list[str | float | None], Score]] = [
        ({"allowed_values": [7, 8]}, ["8"], Score.scored(8)),
        ({"allowed_values": [7, 8]}, ["9"], FAILED),
        ({"allowed_values": [7, 8]}, [8.0], Score.scored(8)),
        ({"allowed_values": list(range(30))}, [8.0], Score.scored(8)),
        ({"allowed_values": list(range(30))}, ["8"], FAILED),
        ({"allowed_values": ["pass", "fail"]}, ["fail"], Score.labelled("fail")),
        ({"allowed_values": ["pass", "fail"]}, ["Fail"], FAILED),
        ({}, [99.0], Score.scored(99)),
        ({}, [2.5], FAILED),
        ({"strictness": 3}, [2.0, 5.0, 5.0], Score.scored(5)),
        ({"strictness": 3}, [2.0, 5.0, None], FAILED),
    ]
    for parameters, values, expected in cases:
        assert rate("discrete_criteria", values, definition="How clear?", **parameters) == expected, (
            parameters,
            values,
            expected,
        )


def test_numbers_are_written_in_their_range() -> None:
    (request,) = ask("numeric_criteria", definition="How clear?", allowed_values=[0, 10])
    assert isinstance(request.question, GenerateQuestion)
    assert request.question.schema["properties"]["value"] == {"type": "number", "minimum": 0, "maximum": 10}
    assert rate("numeric_criteria", [10.0], definition="How clear?", allowed_values=[0, 10]) == Score.scored(10)
    assert rate("numeric_criteria", [10.1], definition="How clear?", allowed_values=[0, 10]) == FAILED


def test_placeholders_choose_the_texts_and_never_hold_them() -> None:
    prompt = "Does {response} follow from {retrieved_contexts}? {{yes}}"
    request = resolve("discrete_criteria").request({"prompt": prompt, "allowed_values": ["yes", "no"]})
    assert request.columns == ("response", "retrieved_contexts")
    (asked_once,) = ask("discrete_criteria", prompt=prompt, allowed_values=["yes", "no"])
    assert asked_once.question.texts == {"contexts": "a\nb", "response": "So."}
    definition = join_instructions(request.parameters)["definition"]
    assert definition == "Does [response] follow from [retrieved_contexts]? {yes}"
    without = Sample(response="So.")
    assert request.score(Evidence(without)) == Score.undefined("no retrieved_contexts")


def test_criteria_that_cannot_be_asked_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "needs either a definition or a prompt"),
        ({"definition": "a", "prompt": "b"}, "needs either a definition or a prompt"),
        ({"prompt": "Rate {answer}"}, "placeholders are among {user_input}, {response}"),
        ({"prompt": "Rate {response.text}"}, "placeholders are among"),
        ({"prompt": "Rate {}"}, "placeholders are among"),
        ({"prompt": "Rate {response"}, "with all other braces doubled"),
        ({"definition": "a", "allowed_values": []}, "at least two different whole numbers, or different texts"),
        ({"definition": "a", "allowed_values": ["fine"]}, "at least two different whole numbers"),
        ({"definition": "a", "allowed_values": ["fine", " not fine"]}, "without white space around them"),
        ({"definition": "a", "allowed_values": [1, 1]}, "at least two different whole numbers"),
        ({"definition": "a", "allowed_values": [1, "two"]}, "at least two different whole numbers"),
        ({"definition": "a", "allowed_values": [True, False]}, "at least two different whole numbers"),
        ({"definition": "a", "strictness": 0}, "strictness must be a whole number of at least 1"),
    ]
    for parameters, message in cases:
        with pytest.raises(MetricParameterError, match=message):
            resolve("discrete_criteria").request(parameters)


@pytest.mark.parametrize("values", [[1, 0], [0], [0, float("inf")], "01", None])
def test_a_range_is_two_rising_numbers(values: Any) -> None:
    with pytest.raises(MetricParameterError, match="two numbers, the least and the greatest"):
        resolve("numeric_criteria").request({"definition": "a", "allowed_values": values})


def test_a_rubric_is_asked_with_its_scale_in_order() -> None:
    rubric = {"score1_description": "all", "score-1_description": "harm", "score0.5_description": "part"}
    (request,) = ask("rubrics", rubrics=rubric)
    question = request.question
    assert isinstance(question, GenerateQuestion)
    assert list(question.instructions.items()) == [("-1", "harm"), ("0.5", "part"), ("1", "all")]
    assert list(question.schema["properties"]) == ["feedback", "score"]
    assert question.schema["properties"]["score"]["enum"] == ["-1", "0.5", "1"]
    assert resolve("rubrics").request({"rubrics": rubric}).bounds == (-1.0, 1.0)


@pytest.mark.parametrize(("value", "expected"), [("0.5", 0.5), (0.5, 0.5), ("1.0", 1.0), ("2", None), ("good", None)])
def test_a_rubric_score_is_one_of_its_numbers(value: str | float, expected: float | None) -> None:
    rubric = {"score1_description": "all", "score0.5_description": "part"}
    assert rate("rubrics", [value], rubrics=rubric).value == expected


def test_the_default_rubric_goes_from_1_to_5() -> None:
    assert list(scale_of(DEFAULT_RUBRICS)) == ["1", "2", "3", "4", "5"]


def test_a_rubric_that_is_no_scale_is_refused() -> None:
    cases: list[Any] = [
        {},
        {"good": "yes"},
        {"score1_description": "a", "score1.0_description": "b"},
        {"score1_description": "a", "score2_description": 2},
        {"score1_description": "all alike"},
        [],
        {1: "a"},
    ]
    for rubric in cases:
        with pytest.raises(
            MetricParameterError, match="rubrics must be a mapping of score<number>_description to text"
        ):
            resolve("rubrics").request({"rubrics": rubric})


def test_the_rubric_of_a_row_is_its_scale() -> None:
    sample = Sample(response="So.", rubrics={"score0_description": "no", "score2_description": "yes"})
    assert rate("instance_rubrics", ["2"], sample) == Score.scored(2, scale="0/2")
    assert rate("instance_rubrics", ["1"], sample) == FAILED
    (request,) = ask("instance_rubrics", sample)
    assert request.question.instructions == {"0": "no", "2": "yes"}


@pytest.mark.parametrize(
    ("rubric", "reason"),
    [(None, reasons.NO_RUBRICS), ({}, reasons.NO_RUBRICS), ({"good": "yes"}, reasons.UNREADABLE_RUBRICS)],
)
def test_a_row_without_a_readable_rubric_is_undefined(rubric: dict[str, str] | None, reason: str) -> None:
    sample = Sample(response="So.", rubrics=rubric)
    assert rate("instance_rubrics", ["1"], sample) == Score.undefined(reason)
    assert resolve("instance_rubrics").request().rating_requests(sample) == Score.undefined(reason)
