"""Retrieval metrics over judgments: equal to trec_eval and ir-measures, and defined where those are silent."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core import reasons
from metric_core.evidence import Evidence
from metric_core.metrics import retrieval_rankings as formulas
from metric_core.metrics.graded_rankings import ranked_passages
from metric_core.metrics.registry import parse_request
from metric_core.prompts.judge_questions import ChoiceQuestion
from metric_core.question_kinds import QuestionKind
from metric_core.records import Rating, Sample, Score

IDS = [f"d{number}" for number in range(12)]
EXACT = 1e-9
a_property = settings(max_examples=150, deadline=None, derandomize=True)
QRELS = st.dictionaries(st.sampled_from(IDS), st.integers(-2, 4), min_size=1)
RANKINGS = st.lists(st.sampled_from(IDS), unique=True, max_size=10)
METRICS = ("ndcg", "average_precision", "retrieval_recall", "retrieval_precision", "reciprocal_rank", "hit_rate")


def score(metric: str, ids: Sequence[str], grades: Mapping[str, float]) -> Score:
    """Return the score of a ranking with given judgments."""
    row = Sample(retrieved_context_ids=tuple(ids), relevance_judgments=dict(grades))
    return parse_request(metric).score(Evidence(row))


def run_of(ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the ranking as trec_eval wants it: with scores that descend."""
    return {"q": {name: float(len(ids) - rank) for rank, name in enumerate(ids)}}


def by_trec_eval(measure: str, ids: Sequence[str], grades: Mapping[str, int], min_grade: int = 1) -> float:
    evaluator = pytrec_eval.RelevanceEvaluator({"q": dict(grades)}, {measure}, relevance_level=min_grade)
    [value] = evaluator.evaluate(run_of(ids))["q"].values()
    return float(value)


def by_ir_measures(measure: Any, ids: Sequence[str], grades: Mapping[str, int]) -> float:
    [found] = ir_measures.iter_calc([measure], {"q": dict(grades)}, run_of(ids))
    return float(found.value)


@given(ids=RANKINGS.filter(bool), grades=QRELS, k=st.integers(1, 12), min_grade=st.integers(1, 3))
@a_property
def test_values_are_those_of_trec_eval(ids: list[str], grades: dict[str, int], k: int, min_grade: int) -> None:
    pairs = {
        "ndcg": ("ndcg", 1),
        f"ndcg(k={k})": (f"ndcg_cut.{k}", 1),
        f"average_precision(min_grade={min_grade})": ("map", min_grade),
        f"average_precision(k={k}, min_grade={min_grade})": (f"map_cut.{k}", min_grade),
        f"retrieval_recall(k={k}, min_grade={min_grade})": (f"recall.{k}", min_grade),
        f"retrieval_precision(k={k}, min_grade={min_grade})": (f"P.{k}", min_grade),
        f"retrieval_precision(min_grade={min_grade})": ("set_P", min_grade),
        f"reciprocal_rank(min_grade={min_grade})": ("recip_rank", min_grade),
        f"hit_rate(k={k}, min_grade={min_grade})": (f"success.{k}", min_grade),
    }
    for metric, (measure, least) in pairs.items():
        found = score(metric, ids, grades)
        if not any(grade >= least for grade in grades.values()):
            assert found == Score.undefined(reasons.NO_RELEVANT_PASSAGE), metric
            continue
        assert found.value == pytest.approx(by_trec_eval(measure, ids, grades, least), abs=EXACT), metric


@given(ids=RANKINGS.filter(bool), grades=QRELS, k=st.integers(1, 12))
@a_property
def test_values_are_those_of_ir_measures(ids: list[str], grades: dict[str, int], k: int) -> None:
    powers = ir_measures.nDCG(gains={grade: 2**grade - 1 for grade in range(1, 5)}) @ k
    pairs = {
        f"ndcg(k={k})": ir_measures.nDCG @ k,
        f"ndcg(k={k}, gain=exponential)": powers,
        f"average_precision(k={k}, min_grade=2)": ir_measures.AP(rel=2) @ k,
        f"reciprocal_rank(k={k}, min_grade=2)": ir_measures.RR(rel=2) @ k,
        f"hit_rate(k={k})": ir_measures.Success @ k,
        f"judged_passages(k={k})": ir_measures.Judged @ k,
    }
    for metric, measure in pairs.items():
        found = score(metric, ids, grades)
        if found.value is None:
            assert found == Score.undefined(reasons.NO_RELEVANT_PASSAGE), metric
        else:
            assert found.value == pytest.approx(by_ir_measures(measure, ids, grades), abs=EXACT), metric


@given(ids=st.lists(st.sampled_from(IDS), max_size=15), grades=QRELS, k=st.none() | st.integers(1, 12))
@a_property
def test_duplicates_count_once_and_lift_no_value_above_1(ids: list[str], grades: dict[str, int], k: int | None) -> None:
    cut = "" if k is None else f"(k={k})"
    for metric in (*(f"{name}{cut}" for name in (*METRICS, "judged_passages")), "ndcg(gain=exponential)"):
        found = score(metric, ids, grades)
        assert found == score(metric, list(dict.fromkeys(ids)), grades), metric
        assert found.value is None or 0 <= found.value <= 1, metric


def test_ties_keep_the_order_of_the_list() -> None:
    row = Sample(
        retrieved_context_ids=("a", "b"), retrieved_context_scores=(0.5, 0.5), relevance_judgments={"a": 1.0, "b": 0.0}
    )
    assert parse_request("reciprocal_rank").score(Evidence(row)).value == 1.0
    tied = pytrec_eval.RelevanceEvaluator({"q": {"a": 1, "b": 0}}, {"recip_rank"})
    assert tied.evaluate({"q": {"a": 0.5, "b": 0.5}})["q"]["recip_rank"] == 0.5  # by id, from the last to the first


def test_grades_of_any_size_give_a_finite_value() -> None:
    for most in [5e-324, 1e-9, 0.5, 511.0, 600.0, 1e308]:
        for gain in ["linear", "exponential"]:
            found = formulas.ndcg([0.0, most, None], [0.0, most], gain=gain).value
            assert found == pytest.approx(1 / math.log2(3), abs=EXACT), (gain, most)


def test_nothing_retrieved_finds_nothing() -> None:
    for metric in ("ndcg", "average_precision", "retrieval_recall", "reciprocal_rank", "hit_rate"):
        assert score(metric, [], {"a": 1}) == Score.scored(0.0), metric
    assert score("retrieval_precision", [], {"a": 1}) == Score.undefined(reasons.NO_CONTEXTS)
    assert score("retrieval_precision(k=5)", [], {"a": 1}) == Score.scored(0.0)
    assert score("judged_passages", [], {"a": 1}) == Score.undefined(reasons.NO_CONTEXTS)


PASSAGES = Sample(
    user_input="How long?",
    retrieved_contexts=("forty minutes", "", "an hour", "forty minutes"),
    retrieved_context_ids=("a", "b", "c", "d"),
    relevance_judgments={"c": 1.0, "z": 1.0},
)


def find_asked(metric: str, row: Sample = PASSAGES) -> dict[str, str]:
    """Return the passages that the judge is asked about, by the name of the question."""
    requests = parse_request(metric).rating_requests(row)
    assert not isinstance(requests, Score)
    for request in requests:
        assert isinstance(request.question, ChoiceQuestion)
        assert request.question.kind is QuestionKind.PASSAGE_RELEVANCE
        assert request.question.labels == ("0", "1", "2", "3")
    return {request.template: request.question.texts["context"] for request in requests}


def score_ratings(metric: str, row: Sample = PASSAGES, /, **ratings: str | None) -> Score:
    """Return the score of a row with ratings, named by the index of the passage: p0="3"."""
    request = parse_request(metric)
    given = [Rating(f"passage:{name[1:]}", value) for name, value in ratings.items()]
    return request.score(Evidence(row, ratings={request.key: given}))


def test_the_judge_is_asked_only_about_texts_whose_grade_is_read() -> None:
    assert find_asked("ndcg") == {}
    all_of_them = {"passage:0": "forty minutes", "passage:2": "an hour", "passage:3": "forty minutes"}
    assert find_asked("ndcg(judgments=judge)") == find_asked("ndcg(judgments=judge, k=1)") == all_of_them
    assert find_asked("retrieval_recall(judgments=both)") == {
        "passage:0": "forty minutes",
        "passage:3": "forty minutes",
    }
    assert find_asked("hit_rate(judgments=judge, k=3)") == {"passage:0": "forty minutes", "passage:2": "an hour"}
    without_ids = Sample(user_input="How long?", retrieved_contexts=("x", "y", "x"))
    assert find_asked("ndcg(judgments=judge)", without_ids) == {"passage:0": "x", "passage:1": "y"}


def test_given_grades_come_before_those_of_the_judge() -> None:
    found = score_ratings("average_precision(judgments=both)", p0="2", p3="0")
    assert found.value == pytest.approx((1 + 2 / 3) / 3)  # a by the judge, c and z as given
    assert score_ratings("average_precision(judgments=judge)", p0="2", p2="0", p3="0").value == 1.0


def test_a_missing_grade_fails_and_a_beyond_the_cut_off_it_is_not_read() -> None:
    assert score_ratings("ndcg(judgments=judge)", p0="3", p2=None, p3="1") == Score.failed(reasons.NO_USABLE_RATING)
    assert score_ratings("hit_rate(judgments=judge, k=1)", p0="3").value == 1.0
    assert score_ratings("ndcg(judgments=judge)", p0="4", p2="1", p3="1") == Score.failed(reasons.NO_USABLE_RATING)


def test_nothing_relevant_is_a_finding_only_where_everything_was_graded() -> None:
    nothing = dict.fromkeys(("p0", "p2", "p3"), "0")
    for metric in ("retrieval_precision", "reciprocal_rank", "hit_rate"):
        assert score_ratings(f"{metric}(judgments=judge)", PASSAGES, **nothing) == Score.scored(0.0), metric
        assert score(metric, ["a"], {"a": 0}) == Score.undefined(reasons.NO_RELEVANT_PASSAGE), metric
    for metric in ("ndcg", "retrieval_recall", "average_precision"):
        assert score_ratings(f"{metric}(judgments=judge)", PASSAGES, **nothing) == Score.undefined(
            reasons.NO_RELEVANT_PASSAGE
        ), metric
    empty = Sample(user_input="How long?", retrieved_contexts=())
    assert score_ratings("hit_rate(judgments=judge)", empty) == Score.undefined(reasons.NO_RELEVANT_PASSAGE)


def test_ids_that_do_not_belong_to_the_passages_are_not_guessed() -> None:
    row = Sample(user_input="How long?", retrieved_contexts=("x", "y"), retrieved_context_ids=("a",))
    for metric in ("ndcg(judgments=judge)", "hit_rate(judgments=both)"):
        request = parse_request(metric)
        assert request.rating_requests(row) == Score.undefined(reasons.IDS_OF_OTHER_PASSAGES)
        assert request.score(Evidence(row)) == Score.undefined(reasons.IDS_OF_OTHER_PASSAGES)
    assert isinstance(ranked_passages(row, "given"), list)


def test_an_empty_question_is_not_asked_about() -> None:
    row = Sample(user_input=" ", retrieved_contexts=("x",))
    undefined = Score.undefined(reasons.empty_column("user_input"))
    assert parse_request("ndcg(judgments=judge)").rating_requests(row) == undefined
    assert score_ratings("ndcg(judgments=judge)", row) == undefined


def test_a_language_model_is_needed_only_for_grades_of_the_judge() -> None:
    assert not parse_request("ndcg").needs_language_model
    assert parse_request("ndcg(judgments=both)").needs_language_model
