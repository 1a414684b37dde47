"""Conversations in runs: rows of turns grouped by session, what their claims rest on, and whole conversations."""

import json
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.run_warnings import warn_about_turns
from flows.planning.planner import draft_plan
from metric_core.records import Sample
from metric_core.stages import Stage
from tasks.rows.computed_tables import RunTables
from tasks.rows.records import build_table, read_samples_table
from tasks.rows.row_store import RowStore
from tasks.rows.table_store import TableStore
from tasks.sources import SourceOptions, read_samples
from tests.structure.house import ROOT
from tests.tasks.builders import says, script

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_stub")]

EXAMPLE = ROOT / "examples" / "conversations.jsonl"


def evaluate(folder: Path, *answers: Any, **options: Any) -> Path:
    judge = script(folder, *answers).model_dump()
    own = {"out": str(folder / "run"), "tables": str(folder / "tables"), "cache": str(folder / "answers.db")}
    values = {"source": str(EXAMPLE), "judge": judge, **own, **options}
    return Path(run_evaluation(RunConfig.model_validate(values)).folder)


def read(run: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(run / f"{table}.parquet").to_pylist()
    return found


def samples(conversations: Literal["turns", "whole"]) -> dict[str, Sample]:
    """Return the rows of the example by their ids."""
    reader = read_samples(str(EXAMPLE), SourceOptions(conversations=conversations), {})
    return {sample.row_id: sample for table in reader for sample in read_samples_table(table)}


def test_turns_are_judged_by_what_was_found_so_far(tmp_path: Path) -> None:
    turns = samples("turns")
    said = {row_id: turn.response or "" for row_id, turn in turns.items()}
    run = evaluate(
        tmp_path,
        says("claims", answer={"claims": ["Other."]}),
        says("claims", said["tyres#2"], answer={"claims": ["The tyre is included."]}),
        says("claims", said["opening-hours#2"], answer={"claims": ["It is closed on Sunday."]}),
        says("claims", said["order-4711#1"], answer={"claims": ["Order 4711 is ready."]}),
        says("claims", said["opening-hours#3"], answer={"claims": []}),
        says("verdict", answer="no"),
        says("verdict", "It is closed on Sunday.", turns["opening-hours#2"].joined_sources, answer="yes"),
        says("verdict", "Order 4711 is ready.", turns["order-4711#1"].joined_sources, answer="yes"),
        says("verdict", "The tyre is included.", said["tyres#1"], answer="yes"),
        says("follow_up", answer={"question": "What is asked here, in full?"}),
        says("usefulness_for_response", answer="no"),
        says("usefulness_for_response", "What is asked here, in full?", answer="yes"),
        metrics=("faithfulness", "context_utilization"),
    )
    manifest, summary = (json.loads((run / name).read_text()) for name in ("run.json", "summary.json"))
    scores = {(row["row_id"], row["metric"]): row for row in read(run, "scores")}
    assert manifest["rows"] == 11
    assert manifest["config"]["by"] == "session_id"
    assert manifest["warnings"] == [
        "2 of 11 rows have no value in retrieved_contexts: context_utilization is undefined there"
    ]
    assert summary["metrics"][0]["distribution"]["groups"] == 4
    assert scores["opening-hours#2", "faithfulness"]["value"] == 1.0
    assert scores["order-4711#1", "faithfulness"]["value"] == 1.0  # by the result of a tool alone
    assert scores["order-4711#1", "context_utilization"]["reason"] == "no retrieved_contexts"
    assert scores["opening-hours#3", "faithfulness"]["status"] == "undefined"
    verdicts = {
        (row["row_id"], row["premise"]): row["verdict"] for row in read(run, "stages/verdicts") if row["claim_id"]
    }
    assert verdicts["tyres#2", "sources"] == 0
    assert verdicts["tyres#2", "earlier_answers"] == 1
    assert scores["tyres#2", "faithfulness"]["value"] == 0.0  # what was said before is no source
    assert ("opening-hours#1", "contexts") in verdicts
    assert len(read(run, "stages/follow_ups")) == 7
    assert scores["e-bike#1", "context_utilization"]["value"] == 0.0
    assert scores["e-bike#2", "context_utilization"]["value"] == pytest.approx(1.0)


def test_a_whole_conversation_is_one_row_for_metrics_that_can_judge_it(tmp_path: Path) -> None:
    polite = {"metric": "aspect_critic", "key": "polite", "parameters": {"definition": "Is the assistant polite?"}}
    run = evaluate(
        tmp_path,
        says("aspect", answer="0"),
        says("aspect", samples("whole")["opening-hours"].conversation or "", answer="1"),
        says("rubric", answer={"feedback": "", "score": "5"}),
        metrics=(polite, "rubrics"),
    )
    scores = {(row["row_id"], row["metric"]): row["value"] for row in read(run, "scores")}
    assert scores == {
        **{(name, "polite"): float(name == "opening-hours") for name in ("opening-hours", "tyres", "order-4711")},
        **{(name, "rubrics"): 5.0 for name in ("opening-hours", "tyres", "order-4711", "e-bike")},
        ("e-bike", "polite"): 0.0,
    }
    assert json.loads((run / "run.json").read_text())["config"]["by"] is None


def test_a_metric_that_could_judge_conversations_is_named(tmp_path: Path) -> None:
    plan = draft_plan(RunConfig(source=str(EXAMPLE), metrics=("faithfulness", "rubrics"))).metrics
    turn = {"row_id": "a", "row_number": 1, "earlier_turns": "User: Hi!"}
    tables = [build_table(Stage.SAMPLES, [{**turn, "earlier_turns": None}]), build_table(Stage.SAMPLES, [turn])]
    refs = [TableStore(str(tmp_path)).write(table) for table in tables]
    all_rows, first = (RunTables(RowStore(str(tmp_path)), shards, {}, {}) for shards in (refs, refs[:1]))
    (warning,) = warn_about_turns(RunConfig(), plan, all_rows)
    assert "rubrics would judge whole conversations" in warning
    assert warn_about_turns(RunConfig(), plan, first) == []
    assert warn_about_turns(RunConfig(conversations="turns"), plan, all_rows) == []


def test_the_plan_asks_for_questions_that_stand_alone_where_a_metric_reads_them() -> None:
    def stages(*metrics: str, **options: Any) -> tuple[Stage, ...]:
        return draft_plan(RunConfig(source=str(EXAMPLE), metrics=metrics or None, **options)).metrics.stages

    assert Stage.FOLLOW_UPS in stages("answer_relevancy")
    assert Stage.FOLLOW_UPS not in stages("answer_relevancy", follow_ups="keep")
    assert Stage.FOLLOW_UPS not in stages("faithfulness")
    assert Stage.FOLLOW_UPS not in stages("rubrics")
