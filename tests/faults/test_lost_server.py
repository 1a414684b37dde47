"""A run whose local Prefect server is killed finishes: it prints its summary, and says that the server is gone."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.local_server.server_record import ServerFolder, ServerRecord
from tests.faults.conftest import Run, Server
from tests.faults.test_killed import ASSAY, configuration, wait_for_requests
from tests.prefect_servers import clean_environment
from tests.sharing import copy_migrated_database

pytestmark = [pytest.mark.prefect, pytest.mark.models]


@pytest.mark.parametrize(("fail_every", "code"), [(0, 0), (1, 8)])
def test_run_ends_with_its_summary_and_code_after_its_server_was_killed(
    serve: Callable[..., Server], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, fail_every: int, code: int
) -> None:
    judge = serve("-m", "tests.faults.stub_server", "--log", str(tmp_path / "requests.jsonl"))
    judge.start("--fail-every", str(fail_every), "--fail-status", "400")
    config = {**configuration(tmp_path, judge), "metrics": ["faithfulness"], "out": str(tmp_path / "run")}
    (tmp_path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    copy_migrated_database(tmp_path_factory, tmp_path / "home" / "prefect")
    process = subprocess.Popen(
        [str(ASSAY), "run", str(tmp_path / "config.yaml")],
        env=clean_environment() | {"ASSAY_HOME": str(tmp_path / "home"), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in wait_for_requests(tmp_path, 3):
        assert process.poll() is None
    record = ServerRecord.read(ServerFolder.from_home(tmp_path / "home"))
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == code, err
    assert "40 rows of" in out
    assert f"run folder: {tmp_path / 'run'}" in out
    assert err.count("the Prefect server is gone") == 1
    assert Run(tmp_path / "run").manifest["status"] == "completed"
