"""Runs that ended too early, under a worker: what was done is not done again. The judge's log is the witness.

`ASSAY_TEST_CRASHES=1` also kills a run, which its automation has to run again (a minute more).
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun

from tests.deployments.served.conftest import Ground, manifest_of, state_of, until
from tests.faults.conftest import Server

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ROWS = 16
IN_FLIGHT = 4


class Judged:
    """A configuration with a judge of its own, deployed.

    Args:
        ground: where to.
        name: of the deployment.
        rows: how many rows it evaluates.
        in_flight: requests to the judge at the same time.
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
        """The prompts that the judge was asked, in their order."""
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
def judged(ground: Ground, request: pytest.FixtureRequest) -> Iterator[Judged]:
    made = Judged(ground, **request.param)
    yield made
    made.server.stop()


@pytest.mark.parametrize("judged", [{"name": "down"}], indirect=True)
def test_after_a_failure_only_what_was_not_done_is_done(judged: Judged) -> None:
    judged.server.start("--die-at", str(2 * ROWS))  # in the middle of the verdicts: the claims took a request a row
    failed = judged.ground.run(judged.deployment)
    assert state_of(failed)[0] == "Failed"
    judged.server.wait()
    answered = judged.asked
    assert len(answered) >= ROWS

    judged.server.start()
    retried = subprocess.run(
        [sys.executable, "-m", "prefect", "flow-run", "retry", str(failed.id)],
        env={**os.environ, "PREFECT_API_URL": judged.ground.url},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "has been scheduled for retry" in " ".join(retried.stdout.split())
    run = judged.ground.ended(failed, ends=2)
    assert state_of(run)[0] == "Completed"
    asked = judged.asked
    twice = sum(count - 1 for count in Counter(asked).values())
    assert twice <= IN_FLIGHT  # what was on its way when the judge died
    manifest = manifest_of(judged.folder / "run")
    assert manifest["stages"]["claims"]["requests"] == 0
    assert manifest["stages"]["verdicts"]["requests"] == len(asked) - len(answered)

    again = judged.ground.run(
        "rerun-stage/rerun-stage-down",
        run=str(judged.folder / "run"),
        stage="verdicts",
        rows="all",
        out=str(judged.folder / "again"),
    )
    assert state_of(again)[0] == "Completed"
    stages = manifest_of(judged.folder / "again")["stages"]
    assert stages["claims"]["requests"] == 0
    verdicts = judged.asked[len(asked) :]
    assert stages["verdicts"]["requests"] == len(verdicts) == len(set(asked)) - ROWS
    assert set(verdicts) < set(asked)


@pytest.mark.skipif("ASSAY_TEST_CRASHES" not in os.environ, reason="takes a minute: set ASSAY_TEST_CRASHES=1")
@pytest.mark.parametrize("judged", [{"name": "crash", "rows": 150, "in_flight": 1}], indirect=True)
def test_a_killed_run_runs_again_by_itself(judged: Judged) -> None:
    judged.server.start()
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(judged.deployment)
        run = client.create_flow_run_from_deployment(deployment.id)

        def process() -> str | None:
            found: FlowRun = client.read_flow_run(run.id)
            has_begun = Path(judged.folder / "requests.jsonl").exists() and len(judged.asked) > 100
            return found.infrastructure_pid if has_begun else None

        pid = until(process, "the process of the run")
        os.kill(int(pid.rpartition(":")[2]), signal.SIGKILL)
        died = time.monotonic()

        def completed() -> FlowRun | None:
            found: FlowRun = client.read_flow_run(run.id)
            return found if found.state is not None and found.state.is_completed() else None

        until(completed, "the run's end")
    sys.stderr.write(f"completed {time.monotonic() - died:.0f} s after it was killed\n")
    twice = sum(count - 1 for count in Counter(judged.asked).values())
    assert twice <= 0.1 * len(judged.asked)
