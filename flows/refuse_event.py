"""The flow `refuse-event`: report an event whose index no deployment of the server evaluates.

Such an event starts no run, so without this flow it would go unnoticed: a misspelt index, or a resource id without
the prefix.
"""

from typing import Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas import State
from prefect.states import Completed, Failed

from flows.config.alert_options import AlertSettings
from flows.config.deploy_options import DeploySettings
from flows.config.result_options import MonitoringOptions
from flows.execution.deployed_parameters import as_deployed
from flows.index_events.index_event import EVENT, RESOURCE, ArrivedEvent
from flows.index_events.listeners import describe_listeners, listening, read_listeners
from flows.monitoring.reporter import Reporter, report_refused
from metric_core.errors import ConfigError
from tasks.prefect_support.patience import crash_without_server, wait_for_server


@flow(name="refuse-event", persist_result=False, validate_parameters=False)
@crash_without_server
@as_deployed(refused=report_refused, event=True)
def refuse_event(event: dict[str, Any], alerts: AlertSettings | None = None) -> State[dict[str, Any]]:
    """Send an alert about an event that no deployment listens to.

    Args:
        event: The event, as the trigger passes it.
        alerts: Recipients of the alert.

    Returns:
        A state named Failed, or Completed if a deployment listens to the event.
    """
    reporter = Reporter(options=MonitoringOptions(deploy=DeploySettings(alerts=alerts or AlertSettings())))
    with reporter.reporting_errors():
        arrived = ArrivedEvent.from_parameter(event)
        reporter.payload = arrived.payload
        with get_client(sync_client=True) as client:
            listeners = wait_for_server(lambda: read_listeners(client))
    if heard := listening(listeners, arrived.resource):
        return Completed(message=f"the event is for {', '.join(heard)}", data={})
    unheard = ConfigError(
        f"no deployment listens to the event {EVENT} of the resource {arrived.resource}: the resource id must be "
        f"{RESOURCE} with the id of an index, and {describe_listeners(listeners)}"
    )
    reporter.report_error(unheard)
    return Failed(message=str(unheard))
