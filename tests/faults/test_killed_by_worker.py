"""Flow runs of a worker resume after they are killed, alone or together with the worker.

Questions are counted in the log of the judge server. `ASSAY_TEST_KILLS` and `ASSAY_TEST_ROWS` lengthen the test.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.objects import FlowRun
from prefect.logging.handlers import APILogWorker
from prefect.states import Scheduled

from deployments.local_server import ServerAddress, use_server
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from tests.faults.conftest import ROOT, Run, Server, restart_timer
from tests.faults.test_killed import LOST_PER_KILL, MAX_ASKED_TWICE, asked_prompts, configuration, wait_for_requests
from tests.prefect_servers import worker

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

KILLS = int(os.environ.get("ASSAY_TEST_KILLS", "1"))
POOL = "processes"


class DeployedRun:
    """A flow run of a deployment, which shares neither judge server nor stores with another one.

    Args:
        folder: Folder of all files of the flow run.
        server: Judge server of the flow run.
        client: Client of the Prefect server.
        deployment: Id of the deployment of the flow `evaluate`.
    """

    def __init__(self, folder: Path, server: Server, client: SyncPrefectClient, deployment: UUID) -> None:
        self.folder = folder
        self._client = client
        self._deployment = deployment
        self.config: dict[str, Any] = {
            **configuration(folder, server),
            "tables": str(folder / "tables"),
            "cache": str(folder / "answers.db"),
            "out": str(folder / "run"),
        }

    @property
    def asked(self) -> list[str]:
        """Prompts that the judge server received, in order."""
        return asked_prompts(self.folder)

    def start(self) -> UUID:
        """Create a flow run for the worker, and return its id."""
        configured = DeploymentUpdate(parameters={"config": self.config})
        self._client.update_deployment(self._deployment, configured)
        return self._client.create_flow_run_from_deployment(self._deployment).id

    def wait_for(self, requests: int) -> None:
        """Wait until the judge server has received this number of requests."""
        for _ in wait_for_requests(self.folder, requests):
            pass

    def kill(self, flow_run_id: UUID) -> None:
        """Kill the process group of a flow run, and wait until the worker reports the crash."""
        process = self._wait(flow_run_id, lambda run: run.infrastructure_pid is not None).infrastructure_pid or ""
        os.killpg(int(process.rpartition(":")[2]), signal.SIGKILL)
        killed = self._wait(flow_run_id, lambda run: run.state is not None and run.state.is_final())
        assert killed.state_name == "Crashed"

    def retry(self, flow_run_id: UUID) -> None:
        """Schedule a flow run again, as Prefect's retry does."""
        self._client.set_flow_run_state(flow_run_id, Scheduled(), force=True)

    def finish(self, flow_run_id: UUID) -> Run:
        """Wait until a flow run ends, and return it."""
        ended = self._wait(flow_run_id, lambda run: run.state is not None and run.state.is_final())
        assert ended.state_name == "Completed", ended.state and ended.state.message
        return Run(self.folder / "run")

    def _wait(self, flow_run_id: UUID, is_it: Callable[[FlowRun], bool]) -> FlowRun:
        while not is_it(run := self._client.read_flow_run(flow_run_id)):
            time.sleep(0.2)
        return run


class Worker:
    """The worker of all flow runs.

    Args:
        folder: Folder of the files of the worker and the home of its flow runs.
        url: API URL of the Prefect server.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._running = ExitStack()

    def start(self) -> None:
        """Start the worker, and wait until it accepts flow runs."""
        environment = {"ASSAY_HOME": str(self._folder / "home"), "PREFECT_LOGGING_LEVEL": "CRITICAL"}
        self._running.enter_context(worker(self._url, POOL, self._folder, environment))

    def kill(self) -> None:
        """Kill the worker and the processes of its flow runs."""
        self._running.close()


@pytest.fixture(scope="module")
def prefect_address(whole_server: str) -> Iterator[ServerAddress]:
    """Yield the address of a Prefect server that supports workers."""
    address = ServerAddress(whole_server)
    with use_server(address):
        yield address
        APILogWorker.drain_all(timeout=10)


@pytest.fixture(scope="module")
def running_worker(prefect_address: ServerAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Yield a running worker."""
    one = Worker(tmp_path_factory.mktemp("worker"), prefect_address.url)
    one.start()
    yield one
    one.kill()


@pytest.fixture(scope="module")
def new_flow_run(
    serve: Callable[..., Server], running_worker: Worker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], DeployedRun]]:
    """Yield a function that creates flow runs, each with a separate judge server."""
    del running_worker  # creates the work pool
    with get_client(sync_client=True) as client:
        flow: Any = Flow.from_source(str(ROOT), entrypoint="flows/evaluate.py:evaluate")
        deployment = flow.deploy("killed", work_pool_name=POOL, print_next_steps=False, ignore_warnings=True)

        def make() -> DeployedRun:
            restart_timer()
            place = tmp_path_factory.mktemp("deployed")
            server = serve("-m", "tests.faults.stub_server", "--log", str(place / "requests.jsonl"))
            server.start()
            return DeployedRun(place, server, client, deployment)

        yield make


def test_resumed_flow_runs_have_the_scores_of_an_uninterrupted_run(
    new_flow_run: Callable[[], DeployedRun], running_worker: Worker
) -> None:
    uninterrupted_run = new_flow_run()
    run_evaluation(RunConfig.model_validate(uninterrupted_run.config))
    whole, asked = Run(uninterrupted_run.folder / "run"), uninterrupted_run.asked
    assert max(Counter(asked).values()) == 1
    chance = random.Random(21)
    twice = 0
    for number in range(KILLS):
        one = new_flow_run()
        flow_run_id = one.start()
        one.wait_for(chance.randrange(1, len(asked)))
        if number % 2:
            one.kill(flow_run_id)
            flow_run_id = one.start()
        else:
            running_worker.kill()
            running_worker.start()
            one.retry(flow_run_id)
        resumed = one.finish(flow_run_id)
        assert resumed.cells == whole.cells
        assert resumed.manifest["status"] == "completed"
        assert set(one.asked) == set(asked)
        twice += len(one.asked) - len(asked)
    sys.stderr.write(f"{KILLS} kills under a worker, {len(asked)} requests per run, {twice} asked twice\n")
    assert twice <= max(LOST_PER_KILL * KILLS, MAX_ASKED_TWICE * KILLS * len(asked))
