"""Refusals of runs and deployments before a server or a judge starts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.json_endpoint import JsonEndpoint

Assay = Callable[..., Outcome]

ROW = {"user_input": "Where?", "response": "In hall 1.", "reference": "Hall 1.", "label": "yes"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with data, where no server can start."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a server was started")

    verbs = [f"deployments.cli.{verb}" for verb in ("run", "rerun", "calibrate", "serve", "alert")]
    for module in verbs:
        monkeypatch.setattr(f"{module}.start_server", refuse)
    monkeypatch.setattr("deployments.registry.apply.get_client", refuse)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.chdir(tmp_path)
    rows = [{**ROW, "label": label, "user_input": str(n)} for n, label in enumerate(["yes", "no"] * 3)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    Path("bad.jsonl").write_text(json.dumps(ROW) + "\n{broken\n{broken\n", encoding="utf-8")
    Path("file").touch()
    Path("mine").mkdir()
    Path("mine", "thesis.txt").touch()
    Path("gate.toml").write_text('absolute = ["faithfulnes.mean >= 0.8"]', encoding="utf-8")
    return tmp_path


CASES: list[tuple[str, str, int, str]] = [
    ("run rows.jsonl --out mine", "", 5, "holds files that are not a run's (thesis.txt)"),
    ("run rows.jsonl --out file", "", 5, "is a file, not a folder"),
    ("run rows.jsonl --out file/below", "", 5, "cannot be written: Not a directory"),
    ("run rows.jsonl --out s3://bucket/run", "", 2, "must be a folder of this machine"),
    ("run rows.jsonl --baseline mine", "", 5, "is not a run folder: it has no run.json"),
    ("run rows.jsonl -m context_recall", "", 3, "retrieved_contexts"),
    ("run bad.jsonl", "", 3, "2 of 3 rows of bad.jsonl"),
    ("run rows.jsonl -c c.toml", 'calibration = "none.json"\nverdict = "probability"', 2, "no calibration none.json"),
    ("run rows.jsonl -c c.toml", 'judge.server = {urls = ["http://h/v1"], api_key = "env:NONE"}', 2, "env:NONE names"),
    ("run rows.jsonl -c c.toml", 'judge.launch = {model = "m", python = "/none"}', 2, "there is no such program"),
    ("run rows.jsonl -c c.toml", 'cache = "file/answers.db"', 2, "the answer cache"),
    ("run rows.jsonl -c c.toml", '[deploy]\ngate = "none.toml"', 2, "there is no gate file"),
    ("serve c.toml", '[deploy]\ngate = "gate.toml"', 2, "rule about 'faithfulnes', but the run has only: "),
    ("serve c.toml", '[deploy]\nprune_cron = "0 0 31 2 *"', 2, "has no date"),
    ("serve c.toml", '[deploy.alerts]\nwebhook = "env:NONE"', 2, "env:NONE names an environment variable"),
    ("serve c.toml", '[deploy.alerts.escalation]\nwebhook = "env:NONE"', 2, "env:NONE names an environment variable"),
    ("serve c.toml", '[deploy.alerts]\nmaintenance = [{cron = "noon", hours = 1}]', 2, "a cron expression such as"),
    ("serve c.toml", '[deploy.alerts]\nfile = "file/alerts.jsonl"', 2, "the file of alerts"),
    ("run rows.jsonl --metrics-file mine", "", 2, "the metrics file mine cannot be written"),
    ("run rows.jsonl --metrics-file x-{source}.prom", "", 2, "may hold {deployment} and {index}"),
    ("serve c.toml", '[deploy]\nbaselines = "file"', 2, "the folder of baselines"),
    ("serve c.toml --out mine", "", 5, "holds files that are not a run's"),
    ("deploy c.toml", 'metrics = ["faithfulness"]\n[deploy]\ngate = "gate.toml"', 2, "Did you mean faithfulness?"),
    ("calibrate rows.jsonl --label stars", "", 3, "no column 'stars'"),
    ("calibrate rows.jsonl --label label -m string_similarity --out mine", "", 5, "not a run's"),
    ("compare a b --html mine", "", 5, "is a folder, not a file"),
]


@pytest.mark.parametrize(("command", "config", "code", "message"), CASES)
@pytest.mark.usefixtures("folder")
def test_nothing_starts_before_everything_is_checked(
    assay: Assay, command: str, config: str, code: int, message: str
) -> None:
    Path("c.toml").write_text(config, encoding="utf-8")
    before = sorted(map(str, Path().rglob("*")))
    outcome = assay(*command.split())
    assert message in outcome.err, outcome
    assert (outcome.code, outcome.out) == (code, "")
    assert sorted(map(str, Path().rglob("*"))) == before


def test_the_doctor_reports_the_same_problems(assay: Assay, folder: Path) -> None:
    config = f"""
source = "rows.jsonl"
out = "mine"
baseline = "mine"
[deploy]
gate = "gate.toml"
[deploy.alerts]
webhook = "env:NONE"
file = "{folder}/alerts.jsonl"
"""
    Path("c.toml").write_text(config, encoding="utf-8")
    outcome = assay("doctor", "c.toml", "--json")
    assert outcome.code == 7
    checks = {check["name"]: check for check in json.loads(outcome.out)["checks"]}
    found = {name: check["level"] for name, check in checks.items()}
    expected = {"run folder": "problem", "baseline": "problem", "first rows": "ok", "deployments": "ok"}
    expected |= {"gate": "problem", "alerts: webhook": "problem", "alerts: file": "ok", "baselines": "ok"}
    assert {name: found[name] for name in expected} == expected
    assert "Did you mean" in checks["gate"]["found"] or "has only" in checks["gate"]["found"]


def test_test_of_alerts_says_what_came_back(assay: Assay, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JsonEndpoint() as webhook:
        monkeypatch.setenv("ALERTS", webhook.url)
        text = '[deploy.alerts]\nwebhook = "env:ALERTS"\nfile = "alerts.jsonl"'
        Path("c.toml").write_text(text, encoding="utf-8")
        outcome = assay("alert", "test", "c.toml")
        (received,) = webhook.received
    file = folder / "alerts.jsonl"
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == ["webhook: sent, status 204", "file: sent, written to alerts.jsonl"]
    assert received["outcome"] == "test"
    assert received["text"] == "test of the alerts of rag-assay: nothing has happened"
    assert json.loads(file.read_text(encoding="utf-8"))["title"] == received["title"]
    monkeypatch.setenv("ALERTS", "http://127.0.0.1:9/secret-path")
    outcome = assay("alert", "test", "c.toml", "--json")
    assert outcome.code == 7
    assert [(each["channel"], each["is_sent"]) for each in json.loads(outcome.out)] == [
        ("webhook", False),
        ("file", True),
    ]
    assert "secret-path" not in outcome.out + outcome.err
