"""The judgments of a run become qrels, which other runs read again."""

import io
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import ConfigError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.exports.qrels_table import read_qrels_of_run, write_qrels
from tasks.sources.judgments.qrels_file import read_qrels
from tests.tasks.reports import folders

SAMPLES: list[dict[str, Any]] = [
    {
        "row_id": "q1",
        "row_number": 1,
        "retrieved_contexts": ["one", "two", "one", "three"],
        "retrieved_context_ids": ["a", "b", "a", "c"],
        "relevance_judgments": [{"id": "b", "grade": 1.0}, {"id": "z", "grade": 0.0}],
    },
    {"row_id": "q2", "row_number": 2, "retrieved_contexts": ["two"], "retrieved_context_ids": ["b"]},
]
GRADES = {("q1", 0): "3", ("q1", 1): "0", ("q1", 3): None, ("q2", 0): "2"}


def write_run(folder: Path, samples: list[dict[str, Any]], grades: dict[tuple[str, int], str | None]) -> Path:
    """Write a run whose judge has graded passages, for two metrics."""
    ratings = [
        {
            "row_id": row_id,
            "metric": metric,
            "template": f"passage:{index}",
            "vote": 0,
            "value": value,
            "status": "failed" if value is None else "answered",
        }
        for metric in ("ndcg(judgments=judge)", "hit_rate(judgments=judge)")
        for (row_id, index), value in grades.items()
    ]
    scores = {sample["row_id"]: {"faithfulness": Score.scored(1.0)} for sample in samples}
    stages = {Stage.SAMPLES: samples, Stage.RATINGS: ratings}
    return folders.write_run(folder, scores, stages, {"faithfulness": folders.METRICS["faithfulness"]}, {})


def test_given_grades_go_before_those_of_the_judge(tmp_path: Path) -> None:
    table = read_qrels_of_run(write_run(tmp_path / "run", SAMPLES, GRADES))
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("q1", "b", 1.0, "given"),
        ("q1", "z", 0.0, "given"),
        ("q1", "a", 3.0, "judge"),
        ("q2", "b", 2.0, "judge"),
    ]


def test_trec_qrels_are_read_again(tmp_path: Path) -> None:
    table, file = read_qrels_of_run(write_run(tmp_path / "run", SAMPLES, GRADES)), io.BytesIO()
    write_qrels(table, file)
    read = read_qrels(file.getvalue().decode().splitlines(), "qrels.txt")
    assert read == {"q1": {"b": 1.0, "z": 0.0, "a": 3.0}, "q2": {"b": 2.0}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"relevance_judgments": [{"id": "the guide", "grade": 1.0}]}, "passage_id 'the guide' has white space"),
        ({"relevance_judgments": [{"id": "a", "grade": 0.5}]}, r"the grade 0\.5 is not a whole number"),
    ],
)
def test_trec_refuses_what_it_cannot_hold(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    table = read_qrels_of_run(write_run(tmp_path / "run", [SAMPLES[0] | change], {}))
    with pytest.raises(ConfigError, match=f"{problem}.*; write qrels as CSV instead"):
        write_qrels(table, io.BytesIO())


def test_a_run_without_judgments_or_ids_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no relevance judgments"):
        read_qrels_of_run(write_run(tmp_path / "none", [SAMPLES[1]], {}))
    nameless = SAMPLES[1] | {"retrieved_context_ids": None}
    with pytest.raises(ConfigError, match="passages of the run have no ids"):
        read_qrels_of_run(write_run(tmp_path / "nameless", [nameless], {("q2", 0): "2"}))
