"""Dry runs predict the requests of the run, which a fake judge server counts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.dry_run.dry_run import make_dry_run
from flows.dry_run.dry_run_result import Certainty, DryRun
from flows.evaluate import run_evaluation
from flows.planning.planner import draft_plan
from metric_core.stages import Stage
from tests.tasks.models.judges.openai.fake_server import FakeServer

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": f"Who repairs bike {number}?",
        "response": f"Bikes are repaired in hall {number}. Nobody else repairs bike {number}.",
        "retrieved_contexts": [f"Hall {number} repairs bikes.", "The canteen serves soup."],
        "reference": f"Hall {number} does.",
    }
    for number in range(4)
]
METRICS = ("faithfulness", "answer_relevancy", "nv_accuracy")


def say(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the sentences of the response in the prompt as claims; None for other questions."""
    constraint = body.get("structured_outputs") or {}
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema") or constraint.get("json") or {}
    if "claims" not in schema.get("properties", {}):
        return None
    text = body["messages"][-1]["content"]
    number = next(n for n in range(100) if f"hall {n}." in text or f"Hall {n} does" in text)
    if f"Hall {number} does." in text:
        return {"content": json.dumps({"claims": [f"Hall {number} does."]})}
    claims = [f"Bikes are repaired in hall {number}.", f"Nobody else repairs bike {number}."]
    return {"content": json.dumps({"claims": claims})}


@pytest.fixture
def judge() -> Iterator[FakeServer]:
    with FakeServer(say=say) as server:
        yield server


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, Any]:
    return {"tables": str(tmp_path / "tables"), "cache": str(tmp_path / "answers.db")}


def config(judge: FakeServer, folder: Path, rows: Sequence[Mapping[str, Any]] = ROWS, **options: Any) -> RunConfig:
    source = folder / "rows.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    values = {"source": str(source), "metrics": METRICS, "out": str(folder / "run"), "shard_rows": 2} | options
    return RunConfig.model_validate({"judge": judge.url} | values)


def predict_and_run(judge: FakeServer, options: RunConfig) -> tuple[DryRun, int, dict[str, Any]]:
    """Return the dry run, the number of requests of the run that follows, and the stages of its manifest."""
    before = len(judge.asked)
    dry_run = make_dry_run(draft_plan(options))
    assert len(judge.asked) == before
    assert {stage.kept + stage.missing + stage.unknown for stage in dry_run.stages} == {dry_run.rows}
    run = Path(run_evaluation(options).folder)
    return dry_run, len(judge.asked) - before, json.loads((run / "run.json").read_text())["stages"]


@pytest.mark.usefixtures("prefect_stub")
def test_dry_run_predicts_the_requests_of_the_run(judge: FakeServer, tmp_path: Path, stores: dict[str, Any]) -> None:
    cold, requests, stages = predict_and_run(judge, config(judge, tmp_path, **stores))
    assert cold.tally.requests == requests > 0
    assert (cold.certainty, cold.rows) == (Certainty.ESTIMATED, 4)
    for stage in cold.stages:
        if stage.judged:
            assert (stage.tally.questions, stage.kept) == (stages[stage.stage]["questions"], 0)
            assert (stage.tally.prompt_tokens > 0, stage.tally.output_tokens > 0) == (True, True)
    assert 0 < cold.tally.cached_tokens < cold.tally.prompt_tokens
    assert cold.judge is not None

    warm, requests, _ = predict_and_run(judge, config(judge, tmp_path, **stores))
    assert (warm.tally.requests, warm.tally.questions, requests) == (0, 0, 0)
    assert {(stage.kept, stage.missing, stage.unknown) for stage in warm.stages} == {(4, 0, 0)}
    assert warm.certainty is Certainty.EXACT

    changed = [{**ROWS[0], "response": "Bikes are repaired in hall 9. Nobody else repairs bike 9."}, *ROWS[1:]]
    dry_run, requests, stages = predict_and_run(judge, config(judge, tmp_path, changed, **stores))
    assert dry_run.tally.requests == requests > 0
    claims = next(stage for stage in dry_run.stages if stage.stage is Stage.CLAIMS)
    assert (claims.kept, claims.missing) == (3, 1)
    assert (claims.tally.questions, claims.tally.stored, claims.tally.asked) == (1, 0, 1)

    more = config(judge, tmp_path, changed, metrics=(*METRICS, "answer_correctness"), **stores)
    dry_run, requests, _ = predict_and_run(judge, more)
    assert dry_run.tally.requests == requests > 0


@pytest.mark.usefixtures("prefect_stub")
def test_verdicts_on_the_same_claims_are_found_whatever_the_response_says_besides(
    judge: FakeServer, tmp_path: Path, stores: dict[str, Any]
) -> None:
    only_claims = {"metrics": ("faithfulness",), **stores}
    predict_and_run(judge, config(judge, tmp_path, **only_claims))
    refreshed = config(judge, tmp_path, refresh=("claims",), **only_claims)
    dry_run, requests, stages = predict_and_run(judge, refreshed)
    counts = {stage.stage: (stage.kept, stage.missing, stage.unknown) for stage in dry_run.stages}
    assert counts == {Stage.CLAIMS: (0, 4, 0), Stage.VERDICTS: (0, 0, 4)}
    assert dry_run.tally.requests == requests == 4  # the judge gave the same claims
    assert stages["verdicts"]["stored"] == stages["verdicts"]["questions"] == 8


def test_counts_that_depend_on_answers_are_lower_bounds(
    judge: FakeServer, tmp_path: Path, stores: dict[str, Any]
) -> None:
    options = config(judge, tmp_path, metrics=("noise_sensitivity",), explain="all", **stores)
    dry_run = {stage.stage: stage.certainty for stage in make_dry_run(draft_plan(options)).stages}
    assert dry_run[Stage.CLAIMS] is Certainty.EXACT
    assert dry_run[Stage.VERDICTS] is Certainty.AT_LEAST


def test_dry_run_works_without_a_reachable_judge(tmp_path: Path, stores: dict[str, Any]) -> None:
    with FakeServer() as gone:
        options = config(gone, tmp_path, **stores)
    dry_run = make_dry_run(draft_plan(options))
    assert "cannot be used" in dry_run.problems[0]
    claims = next(stage for stage in dry_run.stages if stage.stage is Stage.CLAIMS)
    assert (claims.kept, claims.missing, claims.unknown, claims.tally.asked) == (0, 0, 4, 4)
    assert claims.certainty is Certainty.ESTIMATED
