"""Contexts fetched from an index: evaluations, records in run.json and dry runs."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.dry_run.dry_run import make_dry_run
from flows.dry_run.dry_run_result import Certainty, DryRun, PendingContexts
from flows.evaluate import run_evaluation
from flows.index_rebuilt import index_rebuilt
from flows.planning.planner import draft_plan
from metric_core.errors import ConfigError, SourceError
from metric_core.stages import Stage
from tasks.options.retriever_options import RetrieverOptions
from tasks.runs.baselines import Baselines
from tests.tasks.sources.retrievers.own_index import Halls

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

HALLS = "tests.tasks.sources.retrievers.own_index:Halls"
SPEAKER = "tests.tasks.sources.retrievers.own_index:Speaker"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Return a file of user questions with outdated contexts and custom column names; no passage covers hall 13."""
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


def test_contexts_and_responses_come_from_the_index(questions: Path) -> None:
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


def test_rows_without_a_reply_stop_the_run_by_default(questions: Path) -> None:
    with pytest.raises(
        SourceError, match=r"gave nothing usable for 1 of 3 rows[\s\S]*row 3: ValueError: there is no"
    ) as caught:
        run_evaluation(config(questions, on_bad_row="fail"))
    (fetched,) = (questions.parent / "tables" / "sources").glob("*.jsonl")
    assert f"the contexts of the other rows are in {fetched}:" in str(caught.value)
    assert [json.loads(line)["row_id"] for line in fetched.read_text(encoding="utf-8").splitlines()] == ["t11", "t12"]


def test_index_is_evaluated_with_its_retriever(questions: Path) -> None:
    settings = {"baselines": str(questions.parent / "baselines")}
    chain = config(questions, deploy=settings)
    state = index_rebuilt(chain, index="halls", version="1", dataset="retriever:", return_state=True)
    assert state.name == "Accepted", state.message
    current = Baselines(settings["baselines"]).current("halls")
    assert current is not None
    assert current.dataset == "retriever:"


def test_source_without_user_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"response": "x"}', encoding="utf-8")
    with pytest.raises(SourceError, match="the source has no user_input"):
        draft_plan(RunConfig(source=str(tmp_path / "rows.jsonl"), retriever=RetrieverOptions(index=HALLS)))


def test_retriever_may_be_a_single_url(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('source = "q.jsonl"\nretriever = "http://localhost:9/q"', encoding="utf-8")
    retriever = load_config(tmp_path / "assay.toml").retriever
    assert retriever is not None
    assert retriever.index == "http://localhost:9/q"


def dry_run_of(chain: RunConfig, *, fetch: bool = False) -> DryRun:
    return make_dry_run(draft_plan(chain), fetch=fetch)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of queries that the index receives."""
    asked: list[str] = []
    retrieve = Halls.retrieve

    def record(index: Halls, query: str) -> Any:
        asked.append(query)
        return retrieve(index, query)

    monkeypatch.setattr(Halls, "retrieve", record)
    return asked


def test_dry_run_counts_contexts_that_have_not_been_fetched(questions: Path, queries: list[str]) -> None:
    dry_run = dry_run_of(config(questions, shard_rows=2))
    assert dry_run.contexts == PendingContexts("halls 1", 3, None)
    assert (dry_run.rows, dry_run.certainty) == (3, Certainty.AT_LEAST)
    assert {(stage.kept, stage.missing, stage.unknown) for stage in dry_run.stages} == {(0, 0, 3)}
    assert queries == []


def test_dry_run_uses_the_contexts_of_the_last_run(questions: Path, queries: list[str]) -> None:
    run_evaluation(config(questions))
    queries.clear()
    dry_run = dry_run_of(config(questions))
    assert dry_run.contexts is not None
    assert dry_run.contexts.fetched is not None
    assert (dry_run.rows, dry_run.bad_rows, dry_run.tally.asked, dry_run.certainty) == (2, 1, 0, Certainty.ESTIMATED)
    assert all((stage.kept, stage.unknown) == (2, 0) for stage in dry_run.stages)
    assert queries == []


@pytest.mark.parametrize(
    "other",
    [
        {"retriever": {"index": HALLS, "generator": SPEAKER, "top_k": 2}},
        {"retriever": {"index": HALLS, "generator": SPEAKER, "top_k": 1, "options": {"opens": "ten"}}},
        {"retriever": {"index": HALLS, "top_k": 1}},
        {"limit": 2},
        {"tables": "elsewhere"},
    ],
)
def test_contexts_of_other_questions_or_another_index_are_not_reused(questions: Path, other: dict[str, Any]) -> None:
    dry_run_of(config(questions), fetch=True)
    for same in ({}, {"retriever": {"index": HALLS, "generator": SPEAKER, "top_k": 1, "concurrency": 1}}):
        kept = dry_run_of(config(questions, **same)).contexts
        assert kept is not None
        assert kept.fetched is not None
    if "tables" in other:
        other = {"tables": str(questions.parent / "elsewhere")}
    found = dry_run_of(config(questions, **other)).contexts
    assert found is not None
    assert found.fetched is None


def test_changed_question_or_lost_file_is_fetched_again(questions: Path) -> None:
    dry_run_of(config(questions), fetch=True)
    for path in (questions.parent / "tables" / "sources").glob("*.jsonl"):
        path.unlink()
    lost = dry_run_of(config(questions)).contexts
    dry_run_of(config(questions), fetch=True)
    questions.write_text(questions.read_text(encoding="utf-8").replace("hall 11", "hall 10"), encoding="utf-8")
    changed = dry_run_of(config(questions)).contexts
    assert lost == changed == PendingContexts("halls 1", 3, None)


def test_dry_run_that_fetches_contexts_predicts_the_run(questions: Path, queries: list[str]) -> None:
    chain = config(questions, cache=str(questions.parent / "answers.db"))
    dry_run = dry_run_of(chain, fetch=True)
    assert len(queries) == 3
    run = Path(run_evaluation(chain).folder)
    usage = json.loads((run / "run.json").read_text(encoding="utf-8"))["usage"]
    claims = next(stage for stage in dry_run.stages if stage.stage is Stage.CLAIMS)
    assert claims.tally.questions == 2
    assert dry_run.tally.asked == usage["questions"] > 2


def test_fetching_without_an_index_is_refused(questions: Path) -> None:
    plain = config(questions, retriever=None, column_map={"asked": "user_input", "answer": "response"})
    with pytest.raises(ConfigError, match="has no retriever; leave --fetch out"):
        dry_run_of(plain, fetch=True)
