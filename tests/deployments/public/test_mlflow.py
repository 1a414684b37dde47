"""The scorer for `mlflow.genai.evaluate`: rows, batches and feedback."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rag_assay.mlflow
from metric_core.errors import ConfigError, FailedCellsError, MissingDependencyError
from metric_core.records import Score
from metric_core.stages import Stage
from rag_assay.mlflow import read_row, scorer
from tests.tasks.reports import folders

SCORES = {
    "good": Score.scored(0.75),
    "empty": Score.undefined("the answer is empty"),
    "broken": Score.failed("the reply was cut off"),
}


class Evaluations:
    """Stands for `evaluate`: notes its rows, and writes a run with a score for each kind of answer."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.options: list[dict[str, Any]] = []

    def __call__(self, data: Sequence[dict[str, Any]], *, metrics: Sequence[str], out: str, **options: Any) -> None:
        self.rows.append([row["response"] for row in data])
        self.options.append(options)
        scores = {row["row_id"]: {metrics[0]: SCORES[row["response"]]} for row in data}
        samples = [{**row, "row_number": number} for number, row in enumerate(data, start=1)]
        declared = {metrics[0]: {"direction": "higher", "bounds": [0.0, 1.0]}}
        folders.write_run(Path(out), scores, {Stage.SAMPLES: samples}, declared, {"status": "completed"})
        if all(row["response"] == "broken" for row in data):
            raise FailedCellsError(out, ("all cells failed",))


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> Evaluations:
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")
    found = Evaluations()
    monkeypatch.setattr(rag_assay.mlflow, "evaluate", found)
    monkeypatch.setattr(rag_assay.mlflow, "_PAUSE", 0.3)
    return found


def test_rows_that_are_scored_at_the_same_time_are_one_run(evaluations: Evaluations) -> None:
    faithful = scorer("faithfulness", judge="http://localhost:8000/v1")
    answers = ["good", "empty", "broken", "good"]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda answer: faithful.run(inputs={"question": "q"}, outputs=answer), answers))
    assert [sorted(rows) for rows in evaluations.rows] == [sorted(answers)]
    assert evaluations.options[0]["judge"] == "http://localhost:8000/v1"
    assert [each.value for each in found] == [0.75, None, None, 0.75]
    assert {each.name for each in found} == {"faithfulness"}
    assert found[1].rationale == "the answer is empty"
    assert found[1].error is None
    assert found[2].error.error_message == "the reply was cut off"


def test_a_row_without_a_usable_answer_of_the_judge_fails_alone(evaluations: Evaluations) -> None:
    assert scorer("faithfulness").run(outputs="broken").error.error_code == "NO_SCORE"
    assert evaluations.rows == [["broken"]]


def test_an_error_of_the_configuration_reaches_every_row(
    evaluations: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise ConfigError("no such judge")

    assert evaluations.rows == []
    monkeypatch.setattr(rag_assay.mlflow, "evaluate", refuse)
    faithful = scorer("faithfulness")
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(faithful.run, outputs="good") for _ in range(2)]
    assert {str(each.exception()) for each in waiting} == {"no such judge"}


def test_the_name_of_a_scorer_is_the_key_of_its_metric(evaluations: Evaluations) -> None:
    assert evaluations.rows == []
    assert scorer("noise_sensitivity(mode=irrelevant)").name == "noise_sensitivity mode irrelevant"
    assert scorer({"metric": "answer_correctness", "key": "facts"}).name == "facts"


def test_samples_are_read_by_usual_names_and_passages_from_retriever_spans() -> None:
    span = SimpleNamespace(outputs=[{"page_content": "Rome has hills."}, "A list."])
    trace = SimpleNamespace(search_spans=lambda span_type: [span, SimpleNamespace(outputs=None)] if span_type else [])
    named = {"answer": "In Rome.", "contexts": ["Rome."]}
    assert read_row({"query": "Where?", "user": "u1"}, named, {"reference": "Rome"}, trace) == {
        "user_input": "Where?",
        "response": "In Rome.",
        "retrieved_contexts": ["Rome."],
        "reference": "Rome",
    }
    assert read_row({"ask": "Where?"}, "In Rome.", {}, trace) == {
        "user_input": "Where?",
        "response": "In Rome.",
        "retrieved_contexts": ["Rome has hills.", "A list."],
    }
    assert read_row({"a": "1", "b": "2"}, None, {}, None) == {}


def test_without_mlflow_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow.genai.scorers", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[mlflow\]'"):
        scorer("faithfulness")
