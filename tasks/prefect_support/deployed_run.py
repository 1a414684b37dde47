"""Read the deployment of the current flow run from the Prefect server, where no parameter of a run can change it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefect.context import FlowRunContext
from prefect.exceptions import ObjectNotFound

from metric_core.errors import AssayError
from tasks.prefect_support.patience import wait_for_server


@dataclass(frozen=True, slots=True)
class DeployedRun:
    """The parameters of a deployment's run, and those of its deployment.

    Args:
        own: Parameters of the deployment as it is on the server.
        given: Parameters of the run: those that the deployment had when the run was created, with what the run was
            given in their place.
        created_from: Version of the deployment when the run was created.
    """

    deployment: str
    own: Mapping[str, Any]
    given: Mapping[str, Any]
    version: str | None
    created_from: str | None

    @property
    def is_outdated(self) -> bool:
        """Whether the deployment has changed since the run was created."""
        return self.version != self.created_from

    @property
    def is_unchanged(self) -> bool:
        """Whether the run was given no value in place of its deployment's, as that was at its creation."""
        inherited = {name: self.given[name] for name in self.own if name in self.given}
        return inherited == self.own or version_of(inherited) == self.created_from


def version_of(parameters: Mapping[str, object]) -> str:
    """Return the version of a deployment with these parameters, which Prefect notes at each run that it creates.

    >>> version_of({"config": {"limit": 5}}) == version_of({"config": {"limit": 6}})
    False
    """
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:16]


def is_deployed() -> bool:
    """Return whether the current flow run is a run of a deployment, and not one of a program that called the flow."""
    context = FlowRunContext.get()
    run = None if context is None else context.flow_run
    return run is not None and run.deployment_id is not None


def read_deployed_run() -> DeployedRun | None:
    """Return the current flow run and its deployment; None if the run has no deployment.

    Raises:
        AssayError: The deployment has been deleted.
    """
    if not is_deployed():
        return None
    from prefect.client.orchestration import get_client  # noqa: PLC0415 other runs start without it

    context = FlowRunContext.get()
    assert context is not None  # noqa: S101 the run is deployed
    run: Any = context.flow_run
    with get_client(sync_client=True) as client:
        try:
            found = wait_for_server(lambda: client.read_deployment(run.deployment_id))
        except ObjectNotFound as error:
            raise AssayError(
                f"the deployment of the flow run {run.name} has been deleted; deploy the configuration again"
            ) from error
    return DeployedRun(found.name, found.parameters or {}, run.parameters, found.version, run.deployment_version)
