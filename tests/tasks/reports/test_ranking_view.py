"""The report shows a graded ranking: where each grade comes from, and what it gains."""

from typing import Any

import pytest

from metric_core.records import Direction
from metric_core.stages import Stage
from tasks.record.run_record import MetricRecord
from tasks.reports.run.ranking_view import RankingMetric, ranking_metrics, rankings_view
from tasks.reports.run.row_tables import RowTables

SAMPLE = {
    "retrieved_contexts": ["one", "two", "three", " ", "one"],
    "retrieved_context_ids": ["a", "b", "c", "d", "a"],
    "relevance_judgments": [{"id": "a", "grade": 2.0}, {"id": "z", "grade": 1.0}],
}


def rating(index: int, value: str | None, key: str = "ndcg") -> dict[str, Any]:
    """Return the row of a grade in the table of ratings."""
    return {
        "metric": key,
        "template": f"passage:{index}",
        "value": value,
        "status": "failed" if value is None else "answered",
        "reason": "cut off" if value is None else None,
        "probabilities": None if value is None else [{"label": value, "probability": 0.75}],
    }


def view(judgments: str, gain: str | None = "linear", k: int | None = None, **changes: Any) -> Any:
    """Return the only ranking of a row whose judge graded the second passage, and failed for the third."""
    tables = RowTables(
        SAMPLE | changes, [], {Stage.RATINGS: [rating(1, "3"), rating(2, None), rating(0, "1", "other")]}
    )
    found = rankings_view(tables, [RankingMetric("ndcg", judgments, k, gain)])
    return found[0] if found else None


def test_given_grades_come_first_and_the_judge_fills_the_holes() -> None:
    ranking = view("both")
    assert [(p["name"]["text"], p["grade"], p["source"]) for p in ranking["passages"]] == [
        ("a", 2.0, "given"),
        ("b", 3.0, "judge"),
        ("c", None, "judge"),
        ("d", 0.0, "judge"),
    ]
    assert ranking["missed"] == 1
    assert [p.get("reason") for p in ranking["passages"]] == [None, None, "cut off", "no text"]
    assert ranking["passages"][1]["probability"] == 0.75


def test_gains_are_relative_to_the_highest_grade_and_end_at_the_cut_off() -> None:
    first, second, third, _ = view("both", k=2)["passages"]
    assert first["gain"] == pytest.approx(2 / 3)
    assert (second["gain"], second["counts"]) == (1.0, second["discount"])
    assert "gain" not in third


def test_grades_come_only_from_where_the_metric_takes_them() -> None:
    assert [p["source"] for p in view("given")["passages"]] == ["given", "unjudged", "unjudged", "unjudged"]
    assert [p["source"] for p in view("judge")["passages"]] == ["unjudged", "judge", "judge", "judge"]
    assert "gain" not in view("both", gain=None)["passages"][0]


def test_a_row_without_a_ranking_shows_none() -> None:
    assert view("given", relevance_judgments=None) is None
    assert view("given", retrieved_context_ids=None) is None
    assert view("judge", retrieved_context_ids=["a"]) is None
    assert view("judge", retrieved_context_ids=None)["passages"][1]["grade"] == 3.0
    assert "name" not in view("judge", retrieved_context_ids=None)["passages"][1]


def test_each_ndcg_has_a_ranking_and_other_metrics_one_per_source_of_grades() -> None:
    def entry(key: str, family: str = "retrieval_rankings", **parameters: Any) -> MetricRecord:
        return MetricRecord(key=key, name=key, family=family, direction=Direction.HIGHER, parameters=parameters)

    metrics = [
        entry("hit", judgments="judge", k=3),
        entry("mrr", judgments="judge", k=None),
        entry("ndcg", judgments="given", k=None, gain="linear"),
        entry("map", judgments="given", k=None),
        entry("faithfulness", "faithfulness"),
    ]
    assert [metric.key for metric in ranking_metrics(metrics)] == ["ndcg", "hit"]
