"""One Prefect server with a worker for all tests of this folder, and what they look at on it."""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.objects import FlowRun, State
from prefect.logging.handlers import APILogWorker
from prefect.states import Crashed, Failed, Running

from deployments.local_server import ServerAddress, use_server
from deployments.registry.apply import DeploymentTarget, apply
from deployments.registry.changes import AppliedChanges
from deployments.registry.specs import plan_deployments
from flows.config.run_config import RunConfig
from flows.index_events.unhandled import GRACE, start_unhandled
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too
from tests.deployments.public.foreign import write_modules
from tests.json_endpoint import JsonEndpoint
from tests.postgres import programs_for_prefect
from tests.prefect_servers import worker
from tests.service_receivers import Services
from tests.smtp_receiver import SmtpReceiver
from tests.waiting import wait_until

POOL = "evaluations"


@dataclass(frozen=True)
class Ground:
    """A server, its worker, and the folder in which its runs are.

    Args:
        url: API URL of the server.
        folder: Working folder of the runs, and parent of their home.
    """

    url: str
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def deploy(self, config: Mapping[str, Any], suffix: str = "") -> list[AppliedChanges]:
        """Deploy a configuration, and return the changes."""
        variables = {"working_dir": str(self.folder)}
        plan = plan_deployments(RunConfig.model_validate(config), suffix)
        return apply(plan, DeploymentTarget(pool=POOL, job_variables=variables))

    def runs(self, deployment: str) -> list[FlowRun]:
        """Return the runs of a deployment, oldest first."""
        wanted = DeploymentFilter(name=DeploymentFilterName(any_=[deployment]))
        with get_client(sync_client=True) as client:
            found = client.read_flow_runs(deployment_filter=wanted)
        return sorted(found, key=lambda run: run.created or run.id)

    def run(self, full_name: str, **parameters: Any) -> FlowRun:
        """Run a deployment, and return the run once it has ended."""
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name(full_name)
            made = client.create_flow_run_from_deployment(deployment.id, parameters=parameters)
        return self.wait_for_end(made)

    def wait_for_end(self, run: FlowRun, ends: int = 1) -> FlowRun:
        """Wait until a run has ended this number of times, and return it."""

        def look() -> FlowRun | None:
            with get_client(sync_client=True) as client:
                states = client.read_flow_run_states(run.id)
                is_over = sum(state.is_final() for state in states) >= ends
                return client.read_flow_run(run.id) if is_over else None

        return wait_until(look, f"the end of {run.name}")


def state_of(run: FlowRun) -> tuple[str, str]:
    """Return the name and the message of the state of a run."""
    assert run.state is not None
    return run.state.name or "", run.state.message or ""


def manifest_of(folder: str | Path) -> dict[str, Any]:
    """Return the content of run.json."""
    return dict(json.loads(Path(folder, "run.json").read_text(encoding="utf-8")))


def wait_for_runs(read_runs: Callable[[], list[FlowRun]], count: int) -> list[FlowRun]:
    """Wait until this number of runs have ended, and return them.

    On SQLite, a busy server loses some: what is then missing has been covered by the run of a later version, or is
    started as the next run for an event would start it.
    """
    patience = time.monotonic() + 60 if programs_for_prefect() is None else math.inf

    def look() -> list[FlowRun]:
        runs = all_ended(read_runs())
        if len(runs) >= count or time.monotonic() < patience:
            return runs if len(runs) >= count else []
        with get_client(sync_client=True) as client:
            return [] if start_unhandled(client, datetime.now(UTC) + GRACE) else runs

    return wait_until(look, f"the end of {count} runs")


def all_ended(runs: list[FlowRun]) -> list[FlowRun]:
    """Return the runs if all have ended, and none before."""
    return runs if all(run.state is not None and run.state.is_final() for run in runs) else []


@pytest.fixture(scope="session")
def webhook() -> Iterator[JsonEndpoint]:
    """Yield the endpoint for alerts of all deployments that name `env:ALERTS`."""
    with JsonEndpoint() as running:
        yield running


@dataclass
class Unattended:
    """Deployments whose work pool has no worker, and what the server sent about them.

    Args:
        folder: Working folder of the runs.
        webhook: Endpoint that receives the messages.
        mailbox: SMTP server that receives them too.
        services: Services with incidents that receive them.
        first: Changes of the first deployment.
    """

    folder: Path
    webhook: JsonEndpoint
    mailbox: SmtpReceiver
    services: Services
    first: list[AppliedChanges] = field(default_factory=list)

    def deploy(self, name: str, env: Mapping[str, str] | None = None) -> list[AppliedChanges]:
        """Deploy a configuration under a name, and return the changes."""
        email = {"server": "env:WATCH_MAIL", "to": ["team@example.com"], "sender": "assay@example.com"}
        deploy = {
            "cron": "0 0 1 1 *",
            "index": name,
            "late_minutes": 0.2,
            "alerts": {"webhook": "env:WATCH_HOOK", "email": email, **self.services.settings},
        }
        config = {"name": name, "source": "nowhere.jsonl", "metrics": ["faithfulness"], "deploy": deploy}
        place = DeploymentTarget(pool="nobody", job_variables={"working_dir": str(self.folder)})
        secrets = {"WATCH_HOOK": self.webhook.url, "WATCH_MAIL": self.mailbox.url, **self.services.secrets}
        variables = secrets if env is None else env
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            return apply(plan_deployments(RunConfig.model_validate(config), f"-{name}"), place)

    def incidents_of(self, evaluation: str) -> dict[str, set[str]]:
        """Return the keys of the open incidents of an evaluation at each service."""
        found = self.services.open()
        return {name: {each for each in keys if each.startswith(evaluation)} for name, keys in found.items()}

    def alerts_about(self, evaluation: str) -> list[dict[str, Any]]:
        """Return the messages about an evaluation that the webhook received."""
        return [each for each in self.webhook.received if each["name"] == evaluation]


@pytest.fixture(scope="session")
def workerless(whole_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unattended]:
    """Deployments without a worker: `asleep` with two runs that are due, `broken` with one that failed and crashed."""
    with JsonEndpoint() as webhook, SmtpReceiver() as mailbox, Services() as services:
        made = Unattended(tmp_path_factory.mktemp("unattended"), webhook, mailbox, services)
        with use_server(ServerAddress(whole_server)), get_client(sync_client=True) as client:
            made.first = made.deploy("asleep")
            made.deploy("broken")
            for name, count in (("asleep", 2), ("broken", 1)):
                deployment = client.read_deployment_by_name(f"monitor/monitor-{name}")
                runs = [client.create_flow_run_from_deployment(deployment.id) for _ in range(count)]
                if name == "broken":
                    states: list[State[Any]] = [Running(), Failed(), Running(), Crashed()]
                    for state in states:
                        client.set_flow_run_state(runs[0].id, state, force=True)
        yield made


@pytest.fixture(scope="session")
def whole_ground(
    whole_server: str, tmp_path_factory: pytest.TempPathFactory, webhook: JsonEndpoint, workerless: Unattended
) -> Iterator[Ground]:
    """A server and a worker."""
    del workerless  # is deployed first, so that its runs are late by the time they are looked at
    folder = write_modules(tmp_path_factory.mktemp("ground"))  # the working folder of runs has modules of a user
    variables = {"ASSAY_HOME": str(folder / "home"), "ALERTS": webhook.url}
    with worker(whole_server, POOL, folder, variables):
        yield Ground(whole_server, folder)


@pytest.fixture(scope="module")
def ground(whole_ground: Ground) -> Iterator[Ground]:
    """A server and a worker; Prefect's client in this process talks to that server. Schedules end with the module."""
    with use_server(ServerAddress(whole_ground.url)):
        yield whole_ground
        with get_client(sync_client=True) as client:
            for deployment in client.read_deployments():
                if deployment.work_pool_name == POOL:  # those without a worker are compared as they were deployed
                    client.pause_deployment(deployment.id)
        APILogWorker.drain_all(timeout=10)
