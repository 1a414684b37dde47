"""Rows whose passages disagree, the passage that the response follows, and which of both is older."""

from typing import Any

import pytest

from metric_core import reasons
from metric_core.declarations.diagnosis_class import SystemPart
from metric_core.diagnosis.classes import classes_of, diagnose
from metric_core.evidence import Evidence
from metric_core.metrics.disagreements import (
    CONTEXT_CONFLICT,
    NO_DISAGREEMENT,
    NOT_DATED,
    NOT_TAKEN,
    STALE_ANSWER,
    asked_pairs,
)
from metric_core.records import Rating, Sample, Score

OLD, NEW = "Camera footage is kept for 72 hours.", "Camera footage is kept for two days."
CONFLICT, STALE = CONTEXT_CONFLICT.request(), STALE_ANSWER.request()


def row(response: str = "", *passages: str, dates: Any = ("2023-05-01", "2024-02-15")) -> Evidence:
    contexts = passages or (OLD, NEW)
    extras = {} if dates is None else {"retrieved_context_dates": list(dates)}
    question = "How long is camera footage kept?"
    return Evidence(Sample(user_input=question, response=response, retrieved_contexts=contexts, extras=extras))


@pytest.mark.parametrize(
    ("passages", "score"),
    [
        ((OLD, NEW), Score.scored(1.0)),
        ((NEW, "Lunch is free.", OLD), Score.scored(1.0)),
        ((OLD, "Camera footage is kept for three days."), Score.scored(0.0)),
        ((OLD,), Score.scored(0.0)),
    ],
)
def test_a_row_with_passages_that_disagree_scores_one(passages: tuple[str, ...], score: Score) -> None:
    assert CONFLICT.score(row("", *passages)) == score


def test_without_passages_nothing_is_known() -> None:
    empty = Evidence(Sample(retrieved_contexts=()))
    assert CONFLICT.score(empty) == Score.undefined(reasons.NO_CONTEXTS)
    assert CONFLICT.score(Evidence(Sample())) == Score.undefined("no retrieved_contexts")


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("It is kept for three days.", 1.0),
        ("72 hours", 1.0),
        ("48 hours.", 0.0),
        ("Two days; until 2024 it was 72 hours.", 0.0),
    ],
)
def test_an_answer_with_the_older_value_alone_is_stale(response: str, value: float) -> None:
    assert STALE.score(row(response)) == Score.scored(value)
    assert STALE.score(row(response, NEW, OLD, dates=("2024-02-15", "2023-05-01"))) == Score.scored(value)


@pytest.mark.parametrize(
    ("dates", "value"),
    [
        (("2.9", "2.10"), 1.0),
        (("v3", "version 2"), 0.0),
        (("1 May 2023", "2024-02-15T08:00:00Z"), 1.0),
        (("2024-02-15T08:00:00+02:00", "2024-02-15T07:00:00Z"), 1.0),
    ],
)
def test_dates_and_versions_say_which_passage_is_older(dates: tuple[str, str], value: float) -> None:
    assert STALE.score(row("72 hours", dates=dates)) == Score.scored(value)


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (row("72 hours", dates=None), "no retrieved_context_dates"),
        (row("72 hours", dates=("2023-05-01", "2.10")), NOT_DATED),
        (row("72 hours", dates=("2023-05-01", "2023-05-01")), NOT_DATED),
        (row("72 hours", dates=("new", "newer")), NOT_DATED),
        (row("72 hours", dates=("2023-05-01",)), NOT_DATED),
        (row("72 hours", OLD, OLD), NO_DISAGREEMENT),
        (row("It is kept.", OLD, NEW), NOT_TAKEN),
    ],
)
def test_a_row_is_undefined_where_it_is_not_known_what_is_stale(evidence: Evidence, reason: str) -> None:
    assert STALE.score(evidence) == Score.undefined(reason)


LED = ("The security team is led by Priya Raman.", "The security team is led by Lee Ogawa.")
FREE = ("Lunch on Mondays is free for staff.", "Lunch on Mondays is not free for staff.")


@pytest.mark.parametrize(
    ("response", "passages", "value"),
    [
        ("Priya Raman leads it.", LED, 1.0),
        ("Lee Ogawa leads it.", LED, 0.0),
        ("Lunch is free for staff.", FREE, 1.0),
        ("Lunch is not free for staff.", FREE, 0.0),
    ],
)
def test_names_and_yes_or_no_are_followed_too(response: str, passages: tuple[str, str], value: float) -> None:
    dates = {"retrieved_context_dates": ["1.0", "2.0"]}
    sample = Sample(response=response, retrieved_contexts=passages, extras=dates)
    assert STALE.score(Evidence(sample)) == Score.scored(value)


def test_a_row_without_another_fault_is_put_down_to_its_passages() -> None:
    own = CONTEXT_CONFLICT.diagnosis
    assert own is not None
    assert own.part is SystemPart.INDEX
    assert own in classes_of([CONFLICT])
    assert diagnose(row("72 hours"), frozenset(), [CONFLICT]).name == own.name
    assert diagnose(row("72 hours", OLD, OLD), frozenset(), [CONFLICT]).name is None


def score_pairs(
    *values: str | None, passages: tuple[str, ...] = ("Footage: three days.", "We keep footage briefly.")
) -> Score:
    request = CONTEXT_CONFLICT.request({"pairs": 3})
    sample = Sample(user_input="How long is footage kept?", retrieved_contexts=passages)
    ratings = [Rating(f"passages:0:{place}", value) for place, value in enumerate(values, start=1)]
    return request.score(Evidence(sample, ratings={request.key: ratings}))


def test_the_judge_decides_where_no_value_differs() -> None:
    assert [score_pairs("yes"), score_pairs("no"), score_pairs("no", "yes", None)] == [
        Score.scored(value) for value in (1, 0, 1)
    ]
    assert score_pairs("no", None) == Score.failed(reasons.NO_USABLE_RATING)
    assert score_pairs(passages=(OLD, NEW)) == Score.scored(1)


def test_a_judge_that_cannot_be_asked_leaves_only_what_the_values_show() -> None:
    request = CONTEXT_CONFLICT.request({"pairs": 3})
    unable = {request.key: [Rating("passages:0:1", None, reasons.NEEDS_LANGUAGE_MODEL, unable=True)]}
    sample = Sample(user_input="How long is footage kept?", retrieved_contexts=("Footage: briefly.", "Footage: long."))
    assert request.score(Evidence(sample, ratings=unable)) == Score.undefined(reasons.NEEDS_LANGUAGE_MODEL)


def test_the_first_pairs_of_distinct_relevant_passages_are_asked() -> None:
    passages = tuple(
        f"{name} we keep." for name in ("Footage", "Lunch", "All footage", "Footage", "Old footage", "New footage")
    )
    sample = Sample(user_input="How long is footage kept?", retrieved_contexts=passages)
    assert asked_pairs(sample, {"pairs": 3}) == [(0, 2), (0, 4), (2, 4)]
    assert asked_pairs(sample, {"pairs": 4}) == [(0, 2), (0, 4), (0, 5), (2, 4)]
    assert asked_pairs(Sample(user_input="", retrieved_contexts=(OLD, NEW)), {"pairs": 4}) == []
