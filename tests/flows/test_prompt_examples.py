"""Labels as examples from end to end: chosen, measured, shown to a judge, and measuring it no more."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deployments.cli.main import app
from flows.calibrate import calibrate_run
from flows.config.calibration_request import CalibrationRequest
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.errors import AssayError
from metric_core.prompts.examples import INTRODUCTION
from tasks.calibration.judge_check import read_claims
from tasks.calibration.label_items import digest_frame, list_rows, list_verdicts
from tasks.calibration.label_store import StoredLabel, keep_labels
from tasks.runs.finished_run import FinishedRun
from tests.tasks.models.judges.openai.fake_server import FakeServer, step

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

WORDS = ("easy", "easy", "hard", "broken")
ROWS = 40
METRIC = "faithfulness"


def say(body: dict[str, Any]) -> dict[str, Any]:
    """Find a claim per response, and support hard passages, as no person does, unless examples say otherwise."""
    if not body.get("logprobs"):
        return {"content": json.dumps({"claims": ["Bikes are repaired."]})}
    system, question = body["messages"][0]["content"], body["messages"][-1]["content"]
    refused = ("hard", "broken") if INTRODUCTION in system else ("broken",)
    content = "no" if any(f"The {word} passage" in question for word in refused) else "yes"
    return {"content": content, "steps": [step(content, {content: 0.9, "no" if content == "yes" else "yes": 0.1})]}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    rows = [
        {
            "user_input": f"Question {number}?",
            "response": f"Hall {number} repairs bikes.",
            "retrieved_contexts": [f"The {WORDS[number % 4]} passage of {number}."],
        }
        for number in range(ROWS)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with FakeServer(say=say) as server:
        yield server


def evaluate(server: FakeServer, prompts: str | None = None) -> FinishedRun:
    config = {
        "source": "rows.jsonl",
        "metrics": [METRIC],
        "judge": {"backend": "server", "server": {"urls": [server.url], "prompts": prompts}},
        **{name: str(Path(name).absolute()) for name in ("tables", "cache", "history")},
    }
    return FinishedRun(run_evaluation(RunConfig.model_validate(config)).folder)


def label_claims(run: FinishedRun) -> None:
    """Label all claims: people see support in easy passages alone."""
    items = list_verdicts(run, run.requests[0])
    texts = {
        sample["row_id"]: sample["retrieved_contexts"][0] for shard in run.samples() for sample in shard.to_pylist()
    }
    frame, told = digest_frame(items), "2026-11-26T12:00:00.000Z"
    keep_labels(
        [
            StoredLabel(each.digest, "anna", float("easy" in texts[each.row_id]), told, "sample", frame, 1.0, None)
            for each in items
        ],
        items,
    )


def prompts(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["prompts", *arguments], catch_exceptions=True)
    if isinstance(result.exception, AssayError):
        return str(result.exception)
    return " ".join(result.output.split())


def test_labels_become_examples_that_help_and_measure_nothing(server: FakeServer) -> None:
    run = evaluate(server)
    assert run.manifest["prompt_examples"] is None
    label_claims(run)
    prompts("export", "own")
    assert "reads no prompts, or those in own already" in prompts(
        "check", "own", "--run", str(run.folder), "-m", METRIC
    )
    said = prompts("examples", "own", str(run.folder), "-m", METRIC, "--count", "4")
    content = json.loads(Path("own/examples.json").read_text(encoding="utf-8"))
    aside = len(content["set_aside"]["items"])
    assert f"own: 4 labels of {METRIC} are examples; {aside} labels of {aside} questions measure nothing" in said
    assert "own has examples" in prompts("examples", "own", str(run.folder), "-m", METRIC)

    server.bodies.clear()
    said = prompts("check", "own", "--run", str(run.folder))
    left = ROWS - aside
    assert len(server.asked) == left, "what the run has judged is not asked again"
    assert f"{left} labelled claims: people agree with the prompts of the run on " in said
    assert "with these on 100.0 %" in said
    assert said.endswith("the prompts help")

    again = evaluate(server, "own")
    shown = again.manifest["prompt_examples"]
    assert (shown["count"], len(shown["questions"])) == (4, aside)
    changed = {kind for kind, digest in again.manifest["prompts"].items() if run.manifest["prompts"][kind] != digest}
    assert changed == {"verdict"}
    assert "4 labels of people as examples" in (again.folder / "report.html").read_text(encoding="utf-8")
    for listed in (list_verdicts(again, again.requests[0]), list_rows(again, METRIC), read_claims(again, "judge")):
        assert len(listed) == left
    request = {"config": {}, "label": "people", "metric": METRIC, "run": str(again.folder), "keep": False}
    counts = calibrate_run(CalibrationRequest.model_validate(request)).calibration.counts
    assert (counts.rows, counts.compared) == (left, left)
    assert prompts("examples", "own", str(again.folder), "-m", METRIC, "--count", "4", "--replace") != ""
    assert json.loads(Path("own/examples.json").read_text(encoding="utf-8")) == content, (
        "the same labels, the same examples"
    )
