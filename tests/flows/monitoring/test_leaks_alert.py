"""A monitored run whose index dropped permissions: the gate, the alert and the pages say so, without any text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.monitor import run_monitor
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.gates.rules import Outcome
from tasks.record.outcome import RunOutcome
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_folder import COMPARISON, REPORT

Acl = list[list[str]] | None
Night = Callable[..., tuple[str, RunOutcome, Path]]
SECRET = "Salaries rise by 4 % in May."
CLEAN, LEAKY = [["staff"], ["staff"]], [["staff"], ["hr"]]
RULE = "leaked_passages: 'greatest at most 0' does not hold, observed 0.500 over 4 rows: observed on 4 rows"
LEAKS = "Leaks: 2 of 4 rows retrieved 2 passages that the asker may not see. Documents: salaries.md (2)."


@pytest.fixture
def night(tmp_path: Path, prefect_stub: object, monkeypatch: pytest.MonkeyPatch) -> Night:
    """Return a function that runs a night, for whose rows the index says who may see both passages."""
    del prefect_stub
    monkeypatch.chdir(tmp_path)

    def run(acl: Acl, **deploy: Any) -> tuple[str, RunOutcome, Path]:
        rows = [
            {
                "id": f"row-{i}",
                "user_input": "What rises?",
                "response": SECRET,
                "reference": "Salaries rise by 3 %.",
                "retrieved_contexts": ["The office opens at eight.", SECRET],
                "retrieved_context_ids": ["office.md", "salaries.md"],
                "asker": ["staff", "hr"] if i % 2 else "staff",
                **({} if acl is None else {"acl": acl}),
            }
            for i in range(4)
        ]
        Path("answers.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        content: dict[str, Any] = {
            "name": "support",
            "source": "answers.jsonl",
            "metrics": ["leaked_passages", "string_similarity"],
            "history": str(tmp_path / "history.db"),
            "deploy": {"baselines": str(tmp_path / "baselines"), "alerts": {"file": "alerts.jsonl"}, **deploy},
        }
        done = run_monitor(RunConfig.model_validate(content))
        assert done.folder is not None
        outcome = read_outcome(done.folder)
        assert outcome is not None
        return done.verdict, outcome, done.folder

    return run


def alerts() -> list[dict[str, Any]]:
    path = Path("alerts.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def test_a_leak_fails_the_run_without_any_gate_file_and_the_alert_names_counts_and_documents(night: Night) -> None:
    verdict, outcome, before = night(CLEAN)
    assert (verdict, outcome.gate, alerts()) == ("accepted", "passed", [])
    verdict, outcome, folder = night(LEAKY)
    assert (verdict, outcome.gate, outcome.accepted) == ("failed", "failed", False)
    (alert,) = alerts()
    assert alert["worse"] == [RULE, LEAKS]
    pages = [(folder / page).read_text(encoding="utf-8") for page in (REPORT, COMPARISON)]
    assert pages[0].index("<h1>") < pages[0].index('<section class="alarm">') < pages[0].index("</header>")
    assert "greatest at most 0" in pages[1]
    for told in (json.dumps(alert), outcome.model_dump_json(), (folder / "summary.json").read_text(encoding="utf-8")):
        assert "salaries.md" in told
        assert SECRET not in told
    compared = compare_runs(before, folder, CompareOptions())
    assert compared.gate is not None
    assert compared.gate.outcome is Outcome.FAILED
    verdict, outcome, _ = night(CLEAN)
    assert (verdict, [each.kind for each in outcome.incidents.recovered]) == ("passed", ["gate"])


def test_a_first_run_that_leaks_is_told(night: Night) -> None:
    _, outcome, _ = night(LEAKY)
    assert outcome.gate == "failed"
    (alert,) = alerts()
    assert alert["worse"] == [RULE, LEAKS]


def test_a_gate_with_a_rule_about_leaks_has_no_other_one(night: Night) -> None:
    verdict, outcome, _ = night(LEAKY, gate={"absolute": ["leaked_passages.greatest <= 0.5"]})
    assert (verdict, [check.rule for check in outcome.checks]) == ("accepted", ["greatest at most 0.5"])
    verdict, outcome, _ = night(LEAKY, gate={"coverage": [{"scored_at_least": 0.5, "metrics": ["leaked_passages"]}]})
    assert [(check.rule, check.outcome) for check in outcome.checks] == [
        ("greatest at most 0", "failed"),
        ("share scored at least 0.5", "passed"),
    ]


def test_a_run_without_permissions_does_not_pass(night: Night) -> None:
    night(CLEAN)
    verdict, outcome, folder = night(None)
    assert (verdict, outcome.gate) == ("inconclusive", "inconclusive")
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8"))["leaks"]["unknown"] == {"no acl": 4}
