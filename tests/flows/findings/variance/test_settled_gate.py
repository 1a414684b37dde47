"""A gate near its threshold is settled by rows that are asked again, which show how much the judge varies."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.config.deploy_options import DeploySettings
from flows.config.gate_file import GateSettings
from flows.evaluate import run_evaluation
from flows.findings.preview import preview_run
from flows.planning.planner import draft_plan
from flows.results.gated_comparison import CompareOptions, apply_gate
from tasks.runs.finished_run import FinishedRun
from tests.flows.findings.anchor.test_judge_changes import KNOWN, WORDS, Evaluation
from tests.tasks.models.judges.openai.fake_server import FakeServer

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


@pytest.fixture
def evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluation]:
    monkeypatch.chdir(tmp_path)
    with FakeServer() as server:
        yield Evaluation(tmp_path, server)


def test_rows_that_are_asked_again_show_how_much_the_judge_varies_and_settle_a_gate(evaluation: Evaluation) -> None:
    """The first answers are the scores. Of 8 rows asked again some differ; the gate is near, so all others are, too."""
    seen: set[str] = set()

    def flips(prompt: str) -> bool:
        is_again = prompt in seen
        seen.add(prompt)
        return KNOWN(prompt) is not (is_again and "hard" in prompt)

    evaluation.verdict = flips
    gate = GateSettings.model_validate({"absolute": ["faithfulness >= 0.72"], "inconclusive": "failed"})
    config = evaluation.configuration().model_copy(update={"anchor": None, "ask_again": 8})
    planned = preview_run(draft_plan(config))
    again = planned.of_findings["rows_asked_again"]
    assert again is not None
    assert (again.dry_run.rows, planned.tally.asked) == (8, len(WORDS) + 8 + len(WORDS))  # claims, verdicts, again
    folder = Path(run_evaluation(config.model_copy(update={"deploy": DeploySettings(gate=gate)})).folder)

    manifest = FinishedRun(folder).record.to_json()
    assert (manifest["asked_again"]["rows"], manifest["asked_again"]["questions"]) == (32, 32)
    found = manifest["judge_variance"]["faithfulness"]
    assert found["rows"] == 32
    assert found["judge"] == pytest.approx(WORDS.count("hard") / len(WORDS) / 2)
    assert found["shares"]["judge"] == 1.0
    assert found["advice"] == "three votes a row would narrow the interval by 42 %, three times the rows by 42 %"
    mean = json.loads((folder / "summary.json").read_text())["metrics"][0]["distribution"]["mean"]
    assert mean == pytest.approx(28 / 32)
    checked = apply_gate(folder, CompareOptions(gate=gate)).gate
    assert checked is not None
    assert checked.checks[0].observed == pytest.approx((28 + 28 - WORDS.count("hard")) / 2 / 32)
