"""Judging in runs: explanations, panels, and usage that matches the counts of the server."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from prefect.artifacts import create_progress_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import Artifact, FlowRun, StateType

from deployments.cli._support.run_lines import usage_lines
from flows.config.run_config import RunConfig
from flows.evaluate import Evaluation, run_evaluation
from flows.publishing import artifacts
from metric_core.errors import BudgetSpentError, JudgeError
from tasks.documents.run.summary_rows import usage_table
from tasks.record.run_record import RunRecord
from tests.tasks.builders import says, script
from tests.tasks.models.judges.openai.fake_server import FakeServer, Fault
from tests.waiting import DEAD_SECONDS

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

KEY = "sk-this-is-secret"
ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": "Where are bikes repaired?",
        "response": f"Bikes are repaired in Dublin {number}.",
        "retrieved_contexts": [f"Repairs {number} happen in Dublin."],
        "reference": f"In Dublin, at door {number}.",
    }
    for number in range(4)
]
CLAIMS = says("claims", answer={"claims": ["Bikes are repaired."]})
EXPLAINED = says("explanation", answer={"explanation": "The passage says so."})


def evaluation_of(folder: Path, **options: Any) -> Evaluation:
    """Run the flow over ROWS with the stores of a folder."""
    folder.mkdir(exist_ok=True)
    source = folder / "rows.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    own = {"out": str(folder / "run"), "tables": str(folder / "tables"), "cache": str(folder / "answers.db")}
    values = {"source": str(source), "metrics": ("faithfulness",), **own, **options}
    return run_evaluation(RunConfig.model_validate(values))


def evaluate(folder: Path, **options: Any) -> Path:
    """Run the flow as `evaluation_of` does, and return the run folder."""
    return Path(evaluation_of(folder, **options).folder)


def judge_of(folder: Path, *answers: Mapping[str, Any]) -> dict[str, Any]:
    folder.mkdir(parents=True)
    return script(folder, *answers).model_dump()


def read(run: Path, name: str) -> Any:
    return json.loads((run / name).read_text(encoding="utf-8"))


def table(run: Path, stage: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / "stages" / f"{stage}.parquet").to_pylist()
    return rows


def artifacts_of(run: Path) -> dict[str | None, Artifact]:
    """Return the artifacts of a run on the Prefect server, by key."""
    wanted = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[read(run, "run.json")["run_id"]]))
    with get_client(sync_client=True) as client:
        return {artifact.key: artifact for artifact in client.read_artifacts(artifact_filter=wanted)}


def flow_runs_of(run_id: str) -> list[FlowRun]:
    """Return the flow run on the Prefect server whose id run.json has."""
    with get_client(sync_client=True) as client:
        return [client.read_flow_run(UUID(run_id))]


def test_explanations_are_written_after_the_verdicts_and_change_no_score(tmp_path: Path) -> None:
    answers = (
        CLAIMS,
        EXPLAINED,
        says("verdict", answer="yes"),
        says("verdict", "Repairs 2 happen in Dublin.", answer="no"),
    )
    plain = evaluate(tmp_path / "plain", judge=judge_of(tmp_path / "a", *answers))
    some = evaluate(tmp_path / "some", judge=judge_of(tmp_path / "b", *answers), explain="unsupported", shard_rows=2)
    everything = evaluate(tmp_path / "all", judge=judge_of(tmp_path / "c", *answers), explain="all")
    assert not (plain / "stages" / "explanations.parquet").exists()
    assert [(row["row_id"], row["text"]) for row in table(some, "explanations")] == [("r2", "The passage says so.")]
    assert [row["row_id"] for row in table(everything, "explanations")] == ["r0", "r1", "r2", "r3"]
    assert pq.read_table(plain / "scores.parquet").equals(pq.read_table(some / "scores.parquet"))
    assert read(everything, "run.json")["stages"]["explanations"]["questions"] == 4


def test_panel_decides_by_majority(tmp_path: Path) -> None:
    third = "Repairs 2 happen in Dublin."
    lead = judge_of(tmp_path / "lead", CLAIMS, says("verdict", answer="yes"), says("verdict", third, answer="no"))
    other = judge_of(tmp_path / "other", says("verdict", answer={"yes": 0.75, "no": 0.25}))
    run = evaluate(tmp_path / "panel", judge=lead, panel=[other])
    verdicts = {row["row_id"]: row for row in table(run, "verdicts")}
    assert [verdicts[row]["verdict"] for row in ("r0", "r1", "r2", "r3")] == [1, 1, 0, 1]
    assert verdicts["r2"]["panel"] == [
        {"judge": "script.json (1)", "label": "no", "probability": None},
        {"judge": "script.json (2)", "label": "yes", "probability": 0.75},
    ]
    manifest = read(run, "run.json")
    assert [judge["backend"] for judge in manifest["panel"]] == ["scripted", "scripted"]
    assert manifest["judge"]["backend"] == "panel"


def test_verdicts_of_a_single_judge_name_no_panel(tmp_path: Path) -> None:
    run = evaluate(tmp_path / "one", judge=judge_of(tmp_path / "j", CLAIMS, says("verdict", answer="yes")))
    assert {row["panel"] for row in table(run, "verdicts")} == {None}


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeServer]]:
    """Yield a function that starts a fake server with an API key, with a short backoff of its judge."""
    monkeypatch.setenv("JUDGE_KEY", KEY)
    monkeypatch.setattr("tasks.models.clients.backoff.FIRST", 0.01)
    servers: list[FakeServer] = []

    def start(**options: Any) -> FakeServer:
        servers.append(FakeServer(key=KEY, **options))
        return servers[-1].__enter__()

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def judge_options(server: FakeServer, **options: Any) -> dict[str, Any]:
    return {"backend": "server", "server": {"urls": [server.url], "api_key_env": "JUDGE_KEY", **options}}


class FaultyReplies:
    """Replies of a fake server: cached tokens, one server error, and one completion that is cut off."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self._fails_next = True

    def __call__(self, body: dict[str, Any]) -> dict[str, Any] | Fault:
        if self._fails_next:
            self._fails_next = False
            return Fault(500)
        text = body["messages"][-1]["content"]
        tokens = len(text.split())
        self.prompt_tokens += tokens
        usage = {"prompt_tokens": tokens, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
        is_cut_off = "Dublin 1." in text and "choice" not in str(body.get("structured_outputs"))
        return {"usage": usage} | ({"content": '{"claims": ["Bi', "finish_reason": "length"} if is_cut_off else {})


def test_usage_of_a_run_matches_the_counts_of_the_server(tmp_path: Path, serve: Callable[..., FakeServer]) -> None:
    say = FaultyReplies()
    server = serve(say=say)
    run = evaluate(tmp_path / "run", judge=judge_options(server), metrics=("faithfulness", "nv_accuracy"))
    manifest = read(run, "run.json")
    usage, stages = manifest["usage"], manifest["stages"]
    answered = len(server.asked) - 1
    assert usage["requests"] == len(server.asked)
    assert usage["prompt_tokens"] == say.prompt_tokens
    assert (usage["cached_tokens"], usage["output_tokens"]) == (3 * answered, 2 * answered)
    assert stages["claims"]["failed"] == usage["failed"]
    assert sum(usage["failed"].values()) == 1
    for count in ("questions", "stored", "requests", "prompt_tokens", "cached_tokens", "output_tokens"):
        assert usage[count] == sum(stage[count] for stage in stages.values())
    shown = usage_table(RunRecord.model_validate(manifest))
    assert shown is not None
    assert shown.rows[-1][:4] == ("total", str(usage["questions"]), "-", str(usage["requests"]))


def test_a_run_stops_at_its_budget_and_continues_with_a_larger_one(
    tmp_path: Path, serve: Callable[..., FakeServer]
) -> None:
    def say(body: dict[str, Any]) -> dict[str, Any]:
        tokens = len(body["messages"][-1]["content"].split())
        return {"usage": {"prompt_tokens": tokens, "completion_tokens": 10}}

    server = serve(say=say)
    own = {"judge": judge_options(server), "metrics": ("faithfulness", "nv_accuracy")}
    own |= {"prices": {"prompt": 1.0, "output": 1000.0, "currency": "EUR"}}
    whole = read(evaluate(tmp_path / "whole", **own), "run.json")
    needed = len(server.asked)
    assert whole["usage"]["requests"] == needed
    with pytest.raises(BudgetSpentError, match=r"the budget of 0\.05 EUR is spent: 0\.05\d* EUR for"):
        evaluate(tmp_path / "run", **own, budget=0.05)
    stopped = read(tmp_path / "run" / "run", "run.json")
    asked = len(server.asked) - needed
    assert (stopped["status"], stopped["usage"]["requests"]) == ("stopped", asked)
    assert 5 <= asked < needed
    (flow_run,) = flow_runs_of(stopped["run_id"])
    assert (flow_run.state_name, flow_run.state_type) == ("Budget spent", StateType.FAILED)
    manifest = read(evaluate(tmp_path / "run", **own, budget="1M tokens"), "run.json")
    assert (manifest["status"], manifest["usage"]["requests"]) == ("completed", needed - asked)
    assert len(server.asked) == 2 * needed


def test_second_run_asks_nothing_and_says_so(tmp_path: Path, serve: Callable[..., FakeServer]) -> None:
    server = serve()
    evaluate(tmp_path / "run", judge=judge_options(server))
    before = len(server.asked)
    manifest = read(evaluate(tmp_path / "run", judge=judge_options(server)), "run.json")
    usage = manifest["usage"]
    assert len(server.asked) == before
    assert (usage["questions"], usage["stored"], usage["requests"]) == (before, before, 0)
    assert usage_table(RunRecord.model_validate(manifest)) is None
    lines = list(usage_lines(RunRecord.model_validate(manifest).usage))
    assert lines == [f"{before} questions to the judge, {before} of them cached"]


def test_run_has_artifacts_for_usage_summary_and_report(tmp_path: Path, serve: Callable[..., FakeServer]) -> None:
    run = evaluate(tmp_path / "run", judge=judge_options(serve()))
    manifest = read(run, "run.json")
    found = artifacts_of(run)
    usage = json.loads(str(found["usage"].data))
    assert [row["stage"] for row in usage] == ["claims", "verdicts", "total"]
    assert usage[-1]["requests"] == str(manifest["usage"]["requests"])
    (row,) = json.loads(str(found["summary"].data))
    mean = read(run, "summary.json")["metrics"][0]["distribution"]["mean"]
    assert (row["metric"], row["mean"], row["scored"], row["failed"]) == ("faithfulness", f"{mean:.3f}", "4", "-")
    assert str(run / "report.html") in str(found["report"].data)
    assert KEY not in str([artifact.model_dump() for artifact in found.values()])


def test_long_stage_shows_its_progress(
    tmp_path: Path, serve: Callable[..., FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "PERIOD", 0.1)
    monkeypatch.setattr(artifacts, "LONGEST_WAIT", 120.0)
    shown = {stage: Event() for stage in ("claims", "verdicts")}

    def create_and_signal(percent: float, key: str, description: str) -> Any:
        made = create_progress_artifact(percent, key, description)
        if (stage := key.removeprefix("progress-")) in shown:  # on a busy machine, short stages have progress too
            shown[stage].set()
        return made

    def answer_when_shown(body: dict[str, Any]) -> None:
        is_choice = "choice" in str(body.get("structured_outputs"))
        assert shown["verdicts" if is_choice else "claims"].wait(DEAD_SECONDS)

    monkeypatch.setattr(artifacts, "create_progress_artifact", create_and_signal)
    found = artifacts_of(evaluate(tmp_path / "run", judge=judge_options(serve(say=answer_when_shown))))
    assert {(key, found[key].type, found[key].data) for key in ("progress-claims", "progress-verdicts")} == {
        ("progress-claims", "progress", 100.0),
        ("progress-verdicts", "progress", 100.0),
    }


def test_artifact_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any) -> None:
        raise ConnectionError("http://me:hunter2@prefect.example cannot be reached")

    monkeypatch.setattr(artifacts, "create_table_artifact", fail)
    judge = judge_of(tmp_path / "j", CLAIMS, says("verdict", answer="yes"))
    evaluation = evaluation_of(tmp_path / "run", judge=judge)
    assert evaluation.warnings == (
        "the artifact 'usage' could not be written to Prefect: ConnectionError",
        "the artifact 'summary' could not be written to Prefect: ConnectionError",
    )
    found = artifacts_of(Path(evaluation.folder)).keys()
    assert found & {artifacts.USAGE, artifacts.SUMMARY, artifacts.REPORT} == {artifacts.REPORT}


def test_a_metric_that_needs_no_model_is_computed_although_no_server_answers(tmp_path: Path) -> None:
    """Neither judge nor embedding server is asked, and no judge is launched."""
    nowhere = {"backend": "server", "server": {"urls": ["http://127.0.0.1:9/v1"], "model": "absent"}}
    launched = {"backend": "server", "launch": {"model": "absent", "python": sys.executable}}
    for name, judge in (("down", nowhere), ("launched", launched)):
        run = evaluate(tmp_path / name, metrics=("string_similarity",), judge=judge, embedder=nowhere)
        assert read(run, "summary.json")["metrics"][0]["scored"] == len(ROWS)
        manifest = read(run, "run.json")
        assert (manifest["judge"]["backend"], manifest["embedder"]) == ("none", None)
    with pytest.raises(JudgeError, match="cannot be reached"):
        evaluate(tmp_path / "asked", metrics=("faithfulness",), judge=nowhere)
