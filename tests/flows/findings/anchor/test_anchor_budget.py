"""The anchor of a run whose budget is spent."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.test_judging import ROWS, evaluate, judge_options, read, serve  # noqa: F401 a fixture
from tests.tasks.models.judges.openai.fake_server import FakeServer

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_an_anchor_beyond_the_budget_leaves_the_results_of_the_run(
    tmp_path: Path,
    serve: Callable[..., FakeServer],  # noqa: F811
) -> None:
    server = serve(say=lambda _body: {"usage": {"prompt_tokens": 90, "completion_tokens": 10}})
    anchor = tmp_path / "anchor.jsonl"
    rows = ({**row, "user_input": f"In the anchor, {row['user_input']}"} for row in ROWS)
    anchor.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    own = {"judge": judge_options(server), "metrics": ("nv_accuracy",)}
    requests = read(evaluate(tmp_path / "alone", **own), "run.json")["usage"]["requests"]
    run = evaluate(tmp_path / "run", **own, anchor={"source": str(anchor)}, budget={"tokens": 100 * requests + 50})
    manifest = read(run, "run.json")
    assert "budget" in manifest["anchor"]["reason"]
    assert any("the anchor has no scores" in warning for warning in manifest["warnings"])
    assert read(run, "summary.json")["metrics"][0]["scored"] == len(ROWS)
