"""Triggers of deployments: events, and the parameters taken from them, in the form of `prefect.yaml`.

A field that an event lacks becomes an empty text: Prefect would silently drop the event, while the flow reports the
missing field.
"""

from datetime import timedelta
from typing import Any, TypeAlias

from prefect.client.schemas import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

from flows.index_events.debounce import claimed_event
from flows.index_events.index_event import EVENT, RESOURCE

Trigger: TypeAlias = dict[str, Any]

TAG = "rag-assay"
RUNS_AGAIN = "rag-assay-runs-again"
"""Prefix of the tag of deployments whose runs are resumed automatically after a crash."""

HEARTBEAT_SECONDS = 30
"""Seconds between two heartbeats of a run; the minimum that Prefect allows."""

SILENCE_SECONDS = 100
"""A run without a heartbeat for this time has crashed."""

_RUN = "prefect.flow-run."
_ENDS = ("Completed", "Failed", "Cancelled", "Crashed")


def on_index_rebuilt(name: str, index: str, debounce_seconds: float) -> Trigger:
    """Return a trigger that starts a run with the last event of an index once no further event has arrived for a time.

    Args:
        name: Name of the automation.
        index: Indexes whose events are accepted, with `*` as a wildcard.
        debounce_seconds: Seconds without a further event.
    """
    return _without(EVENT, name, index, debounce_seconds)


def on_long_burst(name: str, index: str, deployment: str, seconds: tuple[float, float]) -> Trigger:
    """Return a trigger that starts a run with the last event so far if the events of an index keep arriving.

    From the first event on, Prefect waits for the event of a run that covers it. When that event arrives, Prefect
    starts again with the first later event of the index. So an event may wait twice, while its burst continues.

    Args:
        name: Name of the automation.
        index: Indexes whose events are accepted, with `*` as a wildcard.
        deployment: Name of the deployment, whose runs announce the events that they cover.
        seconds: Seconds without an event that end a burst, and maximum seconds that an event waits.
    """
    quiet, longest = seconds
    return _without(claimed_event(deployment), name, index, (longest - quiet) / 2)


def _without(expected: str, name: str, index: str, seconds: float) -> Trigger:
    """Return a trigger that starts a run if no expected event follows the event of a rebuilt index in time."""
    return {
        "type": "event",
        "name": name,
        "enabled": True,
        "match": {"prefect.resource.id": f"{RESOURCE}{index}"},
        "after": [EVENT],
        "expect": [expected],
        "for_each": ["prefect.resource.id"],
        "posture": "Proactive",
        "threshold": 1,
        "within": seconds,
        "parameters": {
            "index": _text("event.payload.index"),
            "version": _text("event.payload.version"),
            "dataset": _text("event.payload.dataset"),
            "announced": _text("event.occurred"),
            "event": _text("event.id"),
        },
    }


def on_crash(name: str, tag: str) -> Trigger:
    """Return a trigger that starts a run for each crashed run of the deployments with a tag, with its id.

    Args:
        name: Name of the automation.
        tag: Tag of the deployments.
    """
    return {
        "type": "event",
        "name": name,
        "enabled": True,
        "match": {"prefect.resource.id": f"{_RUN}*"},
        "match_related": {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{tag}"},
        "after": [],
        "expect": [f"{_RUN}Crashed"],
        "for_each": ["prefect.resource.id"],
        "posture": "Reactive",
        "threshold": 1,
        "within": 0,
        "parameters": {"flow_run_id": _text(f"event.resource.id | replace('{_RUN}', '')")},
    }


def on_silence(name: str, tag: str, owner: str) -> AutomationCore:
    """Return the automation that marks runs without a heartbeat as crashed; `prefect.yaml` cannot express it.

    Args:
        name: Name of the automation.
        tag: Tag of the deployments whose runs are watched.
        owner: Resource that owns the automation; both are deleted together.
    """
    heartbeat = f"{_RUN}heartbeat"
    trigger = EventTrigger(
        match={"prefect.resource.id": f"{_RUN}*"},
        match_related={"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{tag}"},
        after={heartbeat},
        expect={heartbeat, *(f"{_RUN}{end}" for end in _ENDS)},
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=SILENCE_SECONDS),
    )
    message = f"no heartbeat for {SILENCE_SECONDS} s: its process or its machine has died"
    return AutomationCore(
        name=name,
        description="A run of rag-assay without a heartbeat has crashed.",
        enabled=True,
        trigger=trigger,
        actions=[ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=message)],
        owner_resource=owner,
    )


def _text(expression: str) -> dict[str, str]:
    return {"__prefect_kind": "jinja", "template": f"{{{{ {expression} | default('') }}}}"}
