"""`assay serve`: server, worker and schedules on one machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun

from deployments.local_server import use_server
from tests.deployments.served.conftest import state_of
from tests.prefect_servers import clean_environment
from tests.sharing import ensure_local_server
from tests.waiting import DEAD_SECONDS, wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.served]

IN_BACKGROUND = ("bash", "-c", "trap '' INT; exec \"$@\"", "bash")
"""Runs a command as a shell runs `command &` in a script: without attention to Ctrl-C."""

EXAMPLE = Path(__file__).parents[3] / "examples" / "handbook.jsonl"


def is_final(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


def test_serve_in_the_background_of_a_shell_ends_at_one_signal_and_pauses_its_schedules(
    server_home: Path, tmp_path: Path
) -> None:
    options = (str(EXAMPLE), "--limit", "1", "-m", "context_precision", "--cron", "0 0 1 1 *")
    command = [str(Path(sys.executable).with_name("assay")), "serve", *options]
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*IN_BACKGROUND, *command, "--name", "served"],
            cwd=tmp_path,
            env=clean_environment() | {"ASSAY_HOME": str(server_home), "PREFECT_HOME": str(tmp_path / "prefect")},
            stdout=file,
            stderr=file,
        )
    try:
        wait_until(lambda: b"started!" in log.read_bytes() or process.poll() is not None, "the worker")
        assert process.poll() is None, log.read_text(encoding="utf-8")
        with use_server(ensure_local_server(server_home)), get_client(sync_client=True) as client:
            working = client.read_deployment_by_name("monitor/monitor-served")
            assert (working.paused, working.work_pool_name) == (False, "rag-assay-serve")
            # The worker and the process of a run reach the server, which asks for a password, without being told it.
            asked = client.read_deployment_by_name("evaluate/evaluate-served")
            run_id = client.create_flow_run_from_deployment(asked.id).id
            wait_until(lambda: is_final(client.read_flow_run(run_id)), "the end of the run")
            assert state_of(client.read_flow_run(run_id))[0] == "Completed", log.read_text(encoding="utf-8")
            refused = client.create_flow_run_from_deployment(
                asked.id, parameters={"config": {"source": "other.jsonl"}}
            ).id
            wait_until(lambda: is_final(client.read_flow_run(refused)), "the end of the refused run")
            wait_until(lambda: b"cannot set config.source" in log.read_bytes(), "the line of the refused run")
            process.send_signal(signal.SIGINT)
            assert process.wait(DEAD_SECONDS) == 0, log.read_text(encoding="utf-8")
            assert client.read_deployment_by_name("monitor/monitor-served").paused
        lines = log.read_text(encoding="utf-8").splitlines()
        happened = [line.split()[2:4] for line in lines if "evaluate-served: " in line]
        ends = [["completed", "evaluate-served:"], ["failed", "evaluate-served:"]]
        assert happened == [each for end in ends for each in (["started", "evaluate-served:"], end)]
        assert "Traceback" not in "".join(lines)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
