"""A job is refused before anything starts if its files cannot be written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deployments.cli.conftest import Outcome, assay  # noqa: F401 a fixture
from tests.deployments.cli.test_refusals import folder  # noqa: F401 a fixture


@pytest.mark.models
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("option", "code", "said"),
    [("--out", 5, "holds files that are not a run's"), ("--results", 5, "the results mine cannot be written")],
)
def test_nothing_starts_before_the_files_of_a_job_are_checked(
    option: str,
    code: int,
    said: str,
    assay: Callable[..., Outcome],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a server was started")

    monkeypatch.setattr("deployments.eval_hub.job_verb.start_server", refuse)
    job = {"id": "1", "benchmark_id": "b", "model": {"url": "http://127.0.0.1:9", "name": "m"}}
    parameters = {"metrics": ["faithfulness"], "data_path": "rows.jsonl"}
    Path("job.json").write_text(json.dumps({**job, "parameters": parameters}), encoding="utf-8")
    done = assay("job", "job.json", "--data", ".", option, "mine")
    assert (done.code, done.out) == (code, "")
    assert said in done.err
