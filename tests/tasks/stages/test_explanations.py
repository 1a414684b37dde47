"""The stage `explanations`: why a verdict is what it is, for the verdicts that the judge was asked for."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metric_core import reasons
from metric_core.stages import Stage
from tasks.options.judge_options import JudgeSettings
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table
from tasks.stages.explanations import Explained, ExplanationsSettings, explanations
from tests.tasks.builders import cells, fails, run_stage, samples_table, says, script

SAMPLE = {"retrieved_contexts": ["It rains.", "It snows."], "reference": "It is dry.", "response": "It pours."}
CLAIMS = {"response:0": "It is wet.", "response:1": "It is warm."}


def verdict(claim: str, premise: str, given: int | None, **more: Any) -> dict[str, Any]:
    status = "failed" if given is None else "answered"
    return {"kind": "support", "claim_id": claim, "premise": premise, "verdict": given, "status": status, **more}


VERDICTS = (
    verdict("response:0", "contexts", 1),
    verdict("response:1", "contexts", 0),
    verdict("response:0", "reference", 0),
    verdict("response:1", "context:1", 0),
    verdict("response:1", "reference", None, reason="the reply was cut off"),
    verdict("response:0", "context:0", 0, reason="empty premise"),
    {**verdict("", "context:0", 0), "kind": "usefulness_for_reference"},
    {**verdict("context_sentence:0:0", "user_input", 0), "kind": "relevance"},
)
UNSUPPORTED = [("response:1", "contexts"), ("response:0", "reference"), ("response:1", "context:1")]


def tables(rows: int = 1) -> dict[Stage, pa.Table]:
    ids = [f"row-{number}" for number in range(1, rows + 1)]
    claims = [
        {"row_id": row_id, "side": "response", "claim_id": claim, "text": text, "status": "answered"}
        for row_id in ids
        for claim, text in CLAIMS.items()
    ]
    return {
        Stage.SAMPLES: samples_table(*[SAMPLE] * rows),
        Stage.CLAIMS: build_table(Stage.CLAIMS, claims),
        Stage.VERDICTS: build_table(Stage.VERDICTS, [{"row_id": row_id, **row} for row_id in ids for row in VERDICTS]),
    }


def test_the_verdicts_that_do_not_support_a_claim_are_explained_with_their_premise(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says(
            "explanation", "It is warm.", "It rains.\nIt snows.", answer={"explanation": "Rain says nothing of heat."}
        ),
        says("explanation", "It is wet.", "It is dry.", answer={"explanation": "Dry is not wet."}),
        says("explanation", "It is warm.", "It snows.", answer={"explanation": "Snow is cold."}),
    )
    output = run_stage(explanations, tables(), ExplanationsSettings(judge=judge))
    assert cells(output.table, "claim_id", "premise", "text", "status") == [
        (*UNSUPPORTED[0], "Rain says nothing of heat.", "answered"),
        (*UNSUPPORTED[1], "Dry is not wet.", "answered"),
        (*UNSUPPORTED[2], "Snow is cold.", "answered"),
    ]
    assert output.usage.questions == 3


def test_all_explains_every_verdict_on_a_claim_that_was_asked_for(tmp_path: Path) -> None:
    judge = script(tmp_path, says("explanation", answer={"explanation": "So it is."}))
    output = run_stage(explanations, tables(), ExplanationsSettings(judge=judge, explained="all"))
    assert cells(output.table, "claim_id", "premise") == [("response:0", "contexts"), *UNSUPPORTED]


def test_a_failed_reply_is_no_explanation(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("explanation", answer={"explanation": "Why not."}),
        fails("explanation", "It is wet.", "It is dry."),
    )
    output = run_stage(explanations, tables(), ExplanationsSettings(judge=judge))
    assert cells(output.table, "text", "status", "reason") == [
        ("Why not.", "answered", None),
        (None, "failed", "the reply was cut off"),
        ("Why not.", "answered", None),
    ]
    assert output.usage.failed == {"the reply was cut off": 1}


@pytest.mark.models
def test_a_judge_that_writes_no_texts_is_not_asked() -> None:
    output = run_stage(explanations, tables(), ExplanationsSettings(judge=JudgeSettings()))
    outcome = (None, "undefined", reasons.NEEDS_LANGUAGE_MODEL)
    assert cells(output.table, "text", "status", "reason") == [outcome] * 3
    assert output.usage.questions == 0


def test_shards_change_nothing(tmp_path: Path) -> None:
    judge = script(tmp_path, says("explanation", answer={"explanation": "So it is."}))
    settings = ExplanationsSettings(judge=judge, explained="all")
    whole = tables(rows=3)
    shards = [
        {stage: table.filter(pa.compute.equal(table["row_id"], f"row-{number}")) for stage, table in whole.items()}
        for number in (1, 2, 3)
    ]
    parts = pa.concat_tables([run_stage(explanations, shard, settings).table for shard in shards])
    assert run_stage(explanations, whole, settings).table.equals(parts)


def rate(**ratings: tuple[str, ...]) -> pa.Table:
    """Return votes of one metric by template."""
    rows = [
        {"row_id": "row-1", "metric": "kind", "template": name, "vote": i, "value": vote, "status": "answered"}
        for name, votes in ratings.items()
        for i, vote in enumerate(votes)
    ]
    return build_table(Stage.RATINGS, rows)


POLITE = MetricSettings(
    name="aspect_critic", key="kind", parameters={"definition": "Is the response polite?", "strictness": 3}
)


def test_the_most_frequent_vote_of_a_rating_is_explained(tmp_path: Path) -> None:
    judge = script(tmp_path, says("rating_explanation", "It pours.", answer={"explanation": "It is curt."}))
    given = {Stage.SAMPLES: samples_table(SAMPLE), Stage.RATINGS: rate(aspect=("0", "1", "0"))}
    settings = ExplanationsSettings(judge=judge, explained="ratings", metrics=(POLITE,))
    output = run_stage(explanations, given, settings)
    assert cells(output.table, "kind", "metric", "template", "text") == [("rating", "kind", "aspect", "It is curt.")]
    assert output.usage.questions == 1


def test_verdicts_and_ratings_are_explained_apart(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("explanation", answer={"explanation": "verdict"}),
        says("rating_explanation", answer={"explanation": "rating"}),
    )
    given = {**tables(), Stage.RATINGS: rate(aspect=("0",))}
    expected: dict[Explained, set[str]] = {
        "unsupported": {"verdict"},
        "ratings": {"rating"},
        "all": {"verdict", "rating"},
    }
    for explained, texts in expected.items():
        settings = ExplanationsSettings(judge=judge, explained=explained, metrics=(POLITE,))
        assert {text for (text,) in cells(run_stage(explanations, given, settings).table, "text")} == texts


def test_a_rating_with_feedback_or_without_a_value_is_not_explained(tmp_path: Path) -> None:
    key: dict[str, Any] = {"row_id": "row-1", "metric": "kind", "template": "aspect", "status": "answered"}
    rows = [{**key, "vote": 0, "value": "1", "feedback": "It is polite."}, {**key, "vote": 1, "value": None}]
    table = build_table(Stage.RATINGS, rows)
    settings = ExplanationsSettings(judge=script(tmp_path), explained="all", metrics=(POLITE,))
    output = run_stage(explanations, {Stage.SAMPLES: samples_table(SAMPLE), Stage.RATINGS: table}, settings)
    assert output.table.num_rows == output.usage.questions == 0
