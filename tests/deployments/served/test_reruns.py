"""Runs that end early under a worker reuse finished work, as counted in the log of the judge server.

`ASSAY_TEST_CRASHES=1` also kills a run, which its automation has to run again (a minute more).
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import Scheduled

from tests.deployments.served.conftest import Ground, manifest_of, state_of
from tests.faults.conftest import Server
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

ROWS = 16
IN_FLIGHT = 4


class JudgedDeployment:
    """A deployed configuration with a separate judge server.

    Args:
        ground: Server and worker of the deployment.
        name: Name of the deployment.
        rows: Number of rows to evaluate.
        in_flight: Number of concurrent requests to the judge.
    """

    def __init__(self, ground: Ground, name: str, rows: int = ROWS, in_flight: int = IN_FLIGHT) -> None:
        self.ground = ground
        self.folder = ground.folder / name
        self.folder.mkdir()
        self.server = Server("-m", "tests.faults.stub_server", "--log", str(self.folder / "requests.jsonl"))
        source = self.folder / "rows.jsonl"
        source.write_text("\n".join(json.dumps(row(name, number)) for number in range(rows)), encoding="utf-8")
        options = {"urls": [self.server.url], "concurrency": in_flight, "max_retries": 0, "unavailable_timeout": 0}
        config = {
            "source": str(source),
            "metrics": ["faithfulness"],
            "judge": {"backend": "server", "server": options, "max_concurrent_stages": 1},
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
            "out": str(self.folder / "run"),
            "deploy": {"index": name},
        }
        ground.deploy(config, suffix=f"-{name}")
        self.deployment = f"evaluate/evaluate-{name}"

    @property
    def asked(self) -> list[str]:
        """Prompts that the judge server received, in order."""
        lines = (self.folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["prompt"] for line in lines if line.endswith("}")]


def row(name: str, number: int) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "user_input": f"When does shop {number} of {name} open?",
        "response": f"Shop {number} of {name} opens at {number % 12}.",
        "retrieved_contexts": [f"Shop {number} of {name} opens at {number % 11}.", f"Shop {number} sells shoes."],
    }


@pytest.fixture
def judged_deployment(ground: Ground, request: pytest.FixtureRequest) -> Iterator[JudgedDeployment]:
    made = JudgedDeployment(ground, **request.param)
    yield made
    made.server.stop()


@pytest.mark.parametrize("judged_deployment", [{"name": "down"}], indirect=True)
def test_retry_and_rerun_do_only_unfinished_work(judged_deployment: JudgedDeployment) -> None:
    judged_deployment.server.start("--die-at", str(2 * ROWS))  # during the verdicts, as claims take one request per row
    failed = judged_deployment.ground.run(judged_deployment.deployment)
    assert state_of(failed)[0] == "Failed"
    judged_deployment.server.wait()
    answered = judged_deployment.asked
    assert len(answered) >= ROWS

    judged_deployment.server.start()
    with get_client(sync_client=True) as client:  # as `prefect flow-run retry` does
        client.set_flow_run_state(failed.id, Scheduled(), force=True)
    run = judged_deployment.ground.wait_for_end(failed, ends=2)
    assert state_of(run)[0] == "Completed"
    asked = judged_deployment.asked
    twice = sum(count - 1 for count in Counter(asked).values())
    assert twice <= IN_FLIGHT  # requests in flight when the judge died
    manifest = manifest_of(judged_deployment.folder / "run")
    assert manifest["stages"]["claims"]["requests"] == 0
    assert manifest["stages"]["verdicts"]["requests"] == len(asked) - len(answered)

    again = judged_deployment.ground.run(
        "rerun-stage/rerun-stage-down", run=str(judged_deployment.folder / "run"), stage="verdicts", rows="all"
    )
    assert state_of(again)[0] == "Completed"
    (folder,) = (judged_deployment.ground.folder / "runs").glob("*-rerun")
    stages = manifest_of(folder)["stages"]
    assert stages["claims"]["requests"] == 0
    verdicts = judged_deployment.asked[len(asked) :]
    assert stages["verdicts"]["requests"] == len(verdicts) == len(set(asked)) - ROWS
    assert set(verdicts) < set(asked)


@pytest.mark.skipif("ASSAY_TEST_CRASHES" not in os.environ, reason="takes a minute: set ASSAY_TEST_CRASHES=1")
@pytest.mark.parametrize("judged_deployment", [{"name": "crash", "rows": 150, "in_flight": 1}], indirect=True)
def test_killed_run_is_restarted_automatically(judged_deployment: JudgedDeployment) -> None:
    judged_deployment.server.start()
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(judged_deployment.deployment)
        run = client.create_flow_run_from_deployment(deployment.id)

        def process() -> str | None:
            found: FlowRun = client.read_flow_run(run.id)
            has_begun = (
                Path(judged_deployment.folder / "requests.jsonl").exists() and len(judged_deployment.asked) > 100
            )
            return found.infrastructure_pid if has_begun else None

        pid = wait_until(process, "the process of the run")
        os.kill(int(pid.rpartition(":")[2]), signal.SIGKILL)
        died = time.monotonic()

        def completed() -> FlowRun | None:
            found: FlowRun = client.read_flow_run(run.id)
            return found if found.state is not None and found.state.is_completed() else None

        wait_until(completed, "the run's end")
    sys.stderr.write(f"completed {time.monotonic() - died:.0f} s after it was killed\n")
    twice = sum(count - 1 for count in Counter(judged_deployment.asked).values())
    assert twice <= 0.1 * len(judged_deployment.asked)
