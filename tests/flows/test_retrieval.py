"""Contexts that come from the index itself: fetched, evaluated, and told about in run.json."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.config import RunConfig
from flows.evaluate import run_evaluation
from flows.index_rebuilt import index_rebuilt
from flows.loading import load_config
from flows.plan import plan_of
from metric_core.errors import ConfigError, SourceError
from tasks.retrieve.options import RetrieverOptions
from tasks.runs.baselines import Baselines

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_server")]

HALLS = "tests.tasks.retrieve.own_index:Halls"
SPEAKER = "tests.tasks.retrieve.own_index:Speaker"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A question set with old contexts, under names of its own; nobody knows hall 13."""
    rows = [
        {"ticket": f"t{hall}", "asked": f"What does hall {hall} do?", "contexts": ["old"], "answer": "?", "team": "x"}
        for hall in (11, 12, 13)
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def config(questions: Path, **more: Any) -> RunConfig:
    return RunConfig.model_validate(
        {
            "source": str(questions),
            "column_map": {"asked": "user_input"},
            "id_column": "ticket",
            "metrics": ["faithfulness"],
            "retriever": {"index": HALLS, "generator": SPEAKER, "top_k": 1},
            "on_bad_row": "skip",
            "out": str(questions.parent / "run"),
            "tables": str(questions.parent / "tables"),
        }
        | more
    )


def test_contexts_and_answers_are_those_of_the_index(questions: Path) -> None:
    evaluation = run_evaluation(config(questions))
    assert (evaluation.rows, evaluation.bad_rows) == (2, 1)
    folder = Path(evaluation.folder)
    rows = pq.read_table(folder / "stages" / "samples.parquet").to_pylist()
    assert [row["row_id"] for row in rows] == ["t11", "t12"]
    assert rows[0]["retrieved_contexts"] == ["Hall 11 repairs bikes. It opens at nine."]
    assert rows[0]["retrieved_context_ids"] == ["h11"]
    assert rows[0]["response"] == rows[0]["retrieved_contexts"][0]
    assert json.loads(rows[0]["extras"]) == {"team": "x"}
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert manifest["source"] == str(questions)
    (bad,) = manifest["bad_rows"]
    assert bad == {"number": 3, "column": "retrieved_contexts", "problem": "ValueError: there is no hall 13"}
    assert (manifest["rows_read"], manifest["bad_row_count"]) == (3, 1)
    assert manifest["retrieval"]["index"] == "halls 1"
    assert manifest["config"]["retriever"] is None


def test_rows_without_a_reply_stop_the_run_unless_told_otherwise(questions: Path) -> None:
    with pytest.raises(SourceError, match=r"gave nothing usable for 1 of 3 rows[\s\S]*row 3: ValueError: there is no"):
        run_evaluation(config(questions, on_bad_row="fail"))


def test_an_index_is_evaluated_from_itself(questions: Path) -> None:
    settings = {"baselines": str(questions.parent / "baselines")}
    chain = config(questions, deploy=settings)
    state = index_rebuilt(chain, index="halls", version="1", dataset="retriever:", return_state=True)
    assert state.name == "Accepted", state.message
    current = Baselines(settings["baselines"]).current("halls")
    assert current is not None
    assert current.dataset == "retriever:"


def test_questions_are_needed(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"response": "x"}', encoding="utf-8")
    with pytest.raises(SourceError, match="the source has no user_input"):
        plan_of(RunConfig(source=str(tmp_path / "rows.jsonl"), retriever=RetrieverOptions(index=HALLS)))


def test_one_word_in_the_configuration_is_enough(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('source = "q.jsonl"\nretriever = "http://localhost:9/q"', encoding="utf-8")
    retriever = load_config(tmp_path / "assay.toml").retriever
    assert retriever is not None
    assert retriever.index == "http://localhost:9/q"


def test_a_plan_needs_the_contexts(questions: Path) -> None:
    from flows.forecast import forecast_of

    with pytest.raises(ConfigError, match="which are fetched when it begins"):
        forecast_of(config(questions), plan_of(config(questions)))
