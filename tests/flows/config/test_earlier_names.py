"""Run folders of earlier versions open: earlier names of options are accepted in their manifests only."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.execution.rerun_plan import parse_rerun_request, prepare_rerun
from metric_core.errors import ConfigError
from tasks.comparison.run_differences import find_differences
from tasks.comparison.run_pair import Matching, RunPair
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.runs.finished_run import FinishedRun
from tests.tasks import compared

EARLIER: dict[str, Any] = json.loads(Path(__file__).with_name("earlier_names.json").read_text(encoding="utf-8"))


def test_configuration_of_an_earlier_run_is_read_under_current_names(tmp_path: Path) -> None:
    run = FinishedRun(compared.write_run(tmp_path / "run", 0.5, config=EARLIER))
    config = RunConfig.model_validate(run.config)
    assert config.cache == "postgresql://assay@db.example/answers"
    assert config.calibration == "latest"
    assert config.judge.max_concurrent_stages == 4
    assert config.judge.server is not None
    assert (config.judge.server.context_window, config.judge.server.unavailable_timeout) == (8192, 30.0)
    (member,) = config.panel
    assert member.server is not None
    assert (member.max_concurrent_stages, member.server.unavailable_timeout) == (2, 5.0)
    assert config.embedder.server is not None
    assert config.embedder.server.unavailable_timeout == 6.0


def test_earlier_run_can_be_rerun(tmp_path: Path) -> None:
    config = {"source": "rows.jsonl", "answers": str(tmp_path / "answers.db"), "judge": {"slots": 4}}
    run = compared.write_run(tmp_path / "run", 0.5, config=config)
    ready = prepare_rerun(parse_rerun_request(run=str(run), rows="all"))
    assert (ready.plan.models.cache, ready.plan.models.judge.max_concurrent_stages) == (str(tmp_path / "answers.db"), 4)


def test_earlier_run_with_options_that_are_gone_can_be_rerun(tmp_path: Path) -> None:
    server = {"urls": ["http://localhost:8000/v1"], "votes_temperature": 0.9, "max_reply_bytes": 5000}
    config = {
        "source": "rows.jsonl",
        "cache": str(tmp_path / "answers.db"),
        "max_row_bytes": 16777216,
        "judge": {"backend": "server", "server": server},
    }
    run = compared.write_run(tmp_path / "run", 0.5, config=config)
    plan = prepare_rerun(parse_rerun_request(run=str(run), rows="all")).plan
    assert plan.models.judge.server == ServerJudgeOptions(urls=("http://localhost:8000/v1",))


def test_renamed_options_are_no_difference_between_runs(tmp_path: Path) -> None:
    current = RunConfig.model_validate(
        FinishedRun(compared.write_run(tmp_path / "a", 0.5, config=EARLIER)).config
    ).model_dump(mode="json", exclude_unset=True)
    compared.write_run(tmp_path / "b", 0.5, config=current)
    found = find_differences(RunPair.from_runs(FinishedRun(tmp_path / "a"), FinishedRun(tmp_path / "b"), Matching()))
    assert found.settings == ()


def test_new_configuration_with_earlier_names_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "assay.yaml"
    file.write_text(json.dumps(EARLIER), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    for place, name in [
        ("answers", "cache"),
        ("judge.slots", "max_concurrent_stages"),
        ("judge.server.window", "context_window"),
        ("judge.server.patience", "unavailable_timeout"),
        ("panel.0.slots", "max_concurrent_stages"),
    ]:
        assert f"  {place}: {place.rpartition('.')[2]} is now called {name}" in str(refused.value)
    assert "calibration: kept is now called latest" in str(refused.value)
