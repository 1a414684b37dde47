"""A deployment of a flow on the local Prefect server, whose runs a test starts itself, as a worker would."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow
from prefect.states import Scheduled

from tasks.prefect_support.deployed_run import version_of


class DeployedFlow:
    """A deployment of a flow.

    Args:
        client: Client of the server.
        flow: The flow.
        parameters: Parameters of the deployment.
    """

    def __init__(self, client: SyncPrefectClient, flow: Flow[..., Any], parameters: Mapping[str, Any]) -> None:
        self.client = client
        self.flow = flow
        self.name = f"{flow.name}-{uuid4().hex}"
        self.id = self.deploy(parameters)

    def deploy(self, parameters: Mapping[str, Any]) -> UUID:
        """Deploy the flow with these parameters, and return the id of the deployment."""
        return self.client.create_deployment(
            flow_id=self.client.create_flow_from_name(self.flow.name),
            name=self.name,
            version=version_of(parameters),
            parameters=dict(parameters),
            enforce_parameter_schema=False,
        )

    def create(self, **parameters: Any) -> UUID:
        """Create a run that is given these parameters, and return its id."""
        return self.client.create_flow_run_from_deployment(self.id, parameters=parameters, state=Scheduled()).id

    def start(self, run: UUID) -> FlowRun:
        """Run a flow run in this process, and return it."""
        started = self.client.read_flow_run(run)
        run_flow(self.flow, flow_run=started, parameters=started.parameters, return_type="state")
        return self.client.read_flow_run(run)

    def state(self, run: UUID) -> tuple[str | None, str]:
        """Return the name and the message of the state of a run."""
        state = self.client.read_flow_run(run).state
        assert state is not None
        return state.name, state.message or ""
