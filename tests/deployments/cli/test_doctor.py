"""`assay doctor`: its checks, and its messages about problems."""

import json
import re
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployments.cli._support import doctor_checks
from tests.deployments.cli.conftest import Outcome
from tests.tasks.models.judges.openai.fake_server import FakeServer

Assay = Callable[..., Outcome]
EXAMPLE = "examples/handbook.jsonl"

pytestmark = pytest.mark.models


def by_name(outcome: Outcome) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(outcome.out)["checks"]}


def test_working_machine_passes(assay: Assay) -> None:
    outcome = assay("doctor", EXAMPLE)
    assert outcome.code == 0, outcome.out
    for found in (
        "Python: 3.",
        "rag-assay 0.",
        "GiB free",
        "en_core_web_sm",
        "MiniLM",
        "columns: user_input, response",
    ):
        assert found in outcome.out
    assert "left out: no rubrics: instance_rubrics" in outcome.out
    assert outcome.err == ""


def test_json_has_every_check(assay: Assay) -> None:
    outcome = assay("doctor", "--json")
    assert json.loads(outcome.out)["ok"] is True
    names = {
        "Python",
        "packages",
        "ASSAY_HOME",
        "disk",
        "answers",
        "entities",
        "embedder",
        "Prefect",
        "judge",
        "run folder",
    }
    assert set(by_name(outcome)) == names


def test_unreachable_judge_is_a_problem_with_advice(assay: Assay) -> None:
    outcome = assay("doctor", "--judge", "http://127.0.0.1:9/v1", "--model", "x", "--json")
    assert outcome.code == 7
    judge = by_name(outcome)["judge"]
    assert judge["level"] == "problem"
    assert "cannot be reached" in judge["found"]
    assert "`assay docs judge-servers`" in judge["advice"]


def test_a_measured_judge_says_how_long_a_row_takes(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.dry_run.forecast.find_speed", lambda _home, _urls: (50.0, 10.0))
    with FakeServer() as server:
        found = by_name(assay("doctor", EXAMPLE, "--judge", server.url, "--json"))["duration"]
    assert re.match(
        r"a run takes about \d+ s a row \(estimated from 10\), at what was measured",
        found["found"],
    )
    assert found["advice"] == "`assay plan` counts all rows"


def test_home_that_cannot_be_written_is_a_problem(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "file" / "home"))
    outcome = assay("doctor", "--json")
    assert outcome.code == 7
    assert "set ASSAY_HOME" in by_name(outcome)["ASSAY_HOME"]["advice"]


def test_a_full_disk_is_a_warning(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", ["total", "used", "free"])  # noqa: PYI024 as shutil has it
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1024**2))
    outcome = assay("doctor", "--json")
    assert outcome.code == 0
    assert by_name(outcome)["disk"]["level"] == "warning"


def test_invalid_configuration_is_reported_first(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("metrcs = 1")
    outcome = assay("doctor", str(tmp_path / "bad.toml"))
    assert outcome.code == 7
    assert outcome.out.startswith("problem  configuration: ")
    assert "there is no such option" in outcome.out
    assert "1 problem" in outcome.err


def test_missing_data_is_a_problem(assay: Assay) -> None:
    outcome = assay("doctor", "nowhere.jsonl", "--json")
    assert outcome.code == 7
    assert "does not exist" in by_name(outcome)["data"]["found"]


def test_unexpected_error_prints_no_traceback(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise RuntimeError("the library is broken")

    monkeypatch.setattr(doctor_checks, "check_versions", broken)
    outcome = assay("doctor", "--json")
    assert outcome.code == 7
    assert by_name(outcome)["installation"]["found"] == "RuntimeError: the library is broken"


def test_unreachable_prefect_server_is_a_problem(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "deployments.cli._support.doctor_checks.find_configured_url", lambda: "http://me:geheim@127.0.0.1:9/api"
    )
    outcome = assay("doctor", "--json")
    assert outcome.code == 7
    assert "PREFECT_API_URL" in by_name(outcome)["Prefect"]["advice"]
    assert by_name(outcome)["Prefect"]["found"].startswith("http://127.0.0.1:9/api does not answer")
    assert "geheim" not in outcome.out
