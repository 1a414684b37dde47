"""Silence the reports of the Prefect server about an evaluation for a time, after which the server itself resumes them.

The automations that report are paused, and a further automation resumes them: one that fires when nothing has ended the
silence in time. Prefect keeps that time in its database, so it survives a restart of the server. It forgets it if the
server is down from the end of the silence until more than a minute after; then the next scheduled run that is due
starts the time again, with or without a worker.

Prefect forgets what paused automations wait for: runs that were due in the silence are not reported after it.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events.actions import ResumeAutomation
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture

from deployments.registry.automations import PREFIX, apply_automation, automations_of, remove_automations
from deployments.registry.report_events import WATCHED, deployment_event, send_events
from flows.index_events.listeners import deployments_of
from metric_core.errors import ConfigError
from tasks.history.run_entry import evaluation_name

SILENCED, UNSILENCED = "rag.alert.silenced", "rag.alert.unsilenced"
"""The events that the reports about a deployment are silenced, and that they are resumed before their time."""

_FLOW = "monitor"
_END = ": silenced"
_RUN = "prefect.flow-run."
_LEAST = timedelta(seconds=10)
_UNTIL = re.compile(r"silenced until (\S+)")


def silence_reports(client: SyncPrefectClient, evaluation: str, until: datetime) -> list[str]:
    """Silence the reports about the scheduled runs of an evaluation, in place of an earlier silence.

    Returns:
        The names of the deployments whose reports are silenced; none if the server reports nothing about the
        evaluation.

    Raises:
        ConfigError: The end is less than 10 seconds from now.
    """
    if until < datetime.now(UTC) + _LEAST:
        raise ConfigError(f"a silence must end at least 10 seconds from now, got {until.isoformat()}")
    return [each.name for each in _deployments_of(client, evaluation) if silence_deployment(client, each, until)]


def resume_reports(client: SyncPrefectClient, evaluation: str) -> list[str]:
    """Resume the reports about an evaluation at once, and return the names of the deployments that were silenced."""
    resumed: list[str] = []
    for each in _deployments_of(client, evaluation):
        timers, reports = _split(automations_of(client, [each.name]))
        if not timers:
            continue
        for _ in remove_automations(client, timers):
            pass
        for report in reports:
            client.resume_automation(report.id)
        _send(client, each, WATCHED)  # the time after which a run is missing begins again
        resumed.append(each.name)
    return resumed


def silenced_until(client: SyncPrefectClient, deployment: str) -> datetime | None:
    """Return the end of the silence of a deployment's reports; None if they are not silenced, or not any longer."""
    timers, _ = _split(automations_of(client, [deployment]))
    ends = [datetime.fromisoformat(found[1]) for each in timers if (found := _UNTIL.search(each.description))]
    return next((end for end in ends if end >= datetime.now(UTC) + _LEAST), None)


def silence_deployment(client: SyncPrefectClient, deployment: DeploymentResponse, until: datetime) -> bool:
    """Silence the reports about a deployment, and return whether there are any.

    Args:
        client: Client of the Prefect server.
        deployment: The deployment.
        until: End of the silence.
    """
    _, reports = _split(automations_of(client, [deployment.name]))
    if not reports:
        return False
    apply_automation(client, _timer(deployment, reports, until))
    for report in reports:
        client.pause_automation(report.id)
    _send(client, deployment, SILENCED)
    return True


def _timer(deployment: DeploymentResponse, reports: list[Automation], until: datetime) -> AutomationCore:
    """Return the automation that resumes reports at the end of their silence."""
    resource = f"prefect.deployment.{deployment.id}"
    return AutomationCore(
        name=f"{PREFIX}{deployment.name}{_END}",
        description=f"Reports of rag-assay are silenced until {until.isoformat()}",
        enabled=True,
        trigger=EventTrigger(
            match={"prefect.resource.id": [f"{_RUN}*", f"{WATCHED}.*"]},
            match_related={"prefect.resource.role": "deployment", "prefect.resource.id": resource},
            after={SILENCED, *(f"{_RUN}{state}" for state in ("Late", "Pending", "Running"))},
            expect={UNSILENCED},
            for_each={"related:deployment:prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=until - datetime.now(UTC),
        ),
        actions=[ResumeAutomation(automation_id=each.id) for each in reports],
        owner_resource=resource,
    )


def _send(client: SyncPrefectClient, deployment: DeploymentResponse, event: str) -> None:
    send_events(client, lambda: [deployment_event(event, deployment.id, deployment.name)])


def _deployments_of(client: SyncPrefectClient, evaluation: str) -> Iterator[DeploymentResponse]:
    for each in deployments_of(client, _FLOW):
        config = each.parameters.get("config") or {}
        if evaluation_name(config.get("name"), "", config.get("source")) == evaluation:
            yield each


def _split(automations: list[Automation]) -> tuple[list[Automation], list[Automation]]:
    """Return the automations that end silences, and the others."""
    timers = [each for each in automations if each.name.endswith(_END)]
    return timers, [each for each in automations if each not in timers]
