"""The stage `ratings`: what metrics ask about a whole sample, one row a template and vote."""

from pathlib import Path

from metric_core import reasons
from metric_core.metrics.registry import resolve
from metric_core.stages import Stage
from tasks.options.metric_settings import MetricSettings
from tasks.stages.ratings import RatingsSettings, ratings
from tests.tasks.builders import cells, fails, run_stage, samples_table, says, script


def settings_of(name: str, **parameters: object) -> tuple[MetricSettings, ...]:
    return (MetricSettings.from_request(resolve(name).request(parameters, key=name)),)


def test_both_templates_are_asked_and_a_failed_one_is_kept(tmp_path: Path) -> None:
    judge = script(tmp_path, says("accuracy_1", answer="4"), fails("accuracy_2", reason="cut off"))
    table = samples_table({"user_input": "Q?", "response": "A.", "reference": "R."})
    output = run_stage(
        ratings, {Stage.SAMPLES: table}, RatingsSettings(metrics=settings_of("nv_accuracy"), judge=judge)
    )
    found = cells(output.table, "metric", "value", "status", "reason")
    assert found == [("nv_accuracy", "4", "answered", None), ("nv_accuracy", None, "failed", "cut off")]


def test_a_score_that_needs_no_question_asks_none(tmp_path: Path) -> None:
    table = samples_table({"response": "in here", "retrieved_contexts": ["it is in here."]})
    settings = RatingsSettings(metrics=settings_of("nv_response_groundedness"), judge=script(tmp_path))
    output = run_stage(ratings, {Stage.SAMPLES: table}, settings)
    assert (output.table.num_rows, output.usage.questions) == (0, 0)


def test_every_vote_has_a_row(tmp_path: Path) -> None:
    judge = script(tmp_path, says("aspect", answer=["1", None, "0"]))
    metrics = settings_of("aspect_critic", definition="Is it kind?", strictness=3)
    output = run_stage(
        ratings, {Stage.SAMPLES: samples_table({"response": "A."})}, RatingsSettings(metrics=metrics, judge=judge)
    )
    assert cells(output.table, "vote", "value", "status", "reason") == [
        (0, "1", "answered", None),
        (1, None, "failed", reasons.NO_USABLE_RATING),
        (2, "0", "answered", None),
    ]


def test_the_feedback_of_a_rubric_is_kept(tmp_path: Path) -> None:
    judge = script(tmp_path, says("rubric", answer={"feedback": "Too short.", "score": "2"}))
    output = run_stage(
        ratings,
        {Stage.SAMPLES: samples_table({"response": "A."})},
        RatingsSettings(metrics=settings_of("rubrics"), judge=judge),
    )
    assert cells(output.table, "value", "number", "feedback") == [("2", None, "Too short.")]


def test_a_number_is_kept_as_a_number(tmp_path: Path) -> None:
    judge = script(tmp_path, says("criteria_number", answer={"value": 0.25}))
    metrics = settings_of("numeric_criteria", definition="How clear is it?")
    output = run_stage(
        ratings, {Stage.SAMPLES: samples_table({"response": "A."})}, RatingsSettings(metrics=metrics, judge=judge)
    )
    assert cells(output.table, "value", "number") == [("0.25", 0.25)]


def test_number_that_is_too_large_is_no_rating(tmp_path: Path) -> None:
    judge = script(tmp_path, says("criteria_integer", answer={"value": 10**400}))
    metrics = settings_of("discrete_criteria", definition="How long is it?")
    output = run_stage(
        ratings, {Stage.SAMPLES: samples_table({"response": "A."})}, RatingsSettings(metrics=metrics, judge=judge)
    )
    found = cells(output.table, "value", "number", "status", "reason")
    assert found == [(None, None, "failed", reasons.NO_USABLE_RATING)]
