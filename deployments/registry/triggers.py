"""Build the triggers of deployments: events, and the parameters taken from them, in the form of `prefect.yaml`.

A trigger must be able to pass on any event, whatever it lacks: Prefect drops an event in silence if it cannot make a
run's parameters of it. So a missing field becomes an empty text, and long and odd values are cut; the flow reports.
"""

from datetime import timedelta
from typing import Any, TypeAlias

from prefect.client.schemas import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

from flows.index_events.index_event import EVENT, RESOURCE

Trigger: TypeAlias = dict[str, Any]

TAG = "rag-assay"
RUNS_AGAIN = "rag-assay-runs-again"
"""Prefix of the tag of deployments whose runs are resumed automatically after a crash."""

HEARTBEAT_SECONDS = 30
"""Seconds between two heartbeats of a run; the minimum that Prefect allows."""

SILENCE_SECONDS = 100
"""A run without a heartbeat for this time has crashed."""

_FIELDS = ("index", "version", "dataset", "chunks")

_EVENT_PARAMETER = {
    "__prefect_kind": "json",
    "value": {
        "__prefect_kind": "jinja",
        "template": (
            '{"id": {{ event.id | string | tojson }}, "resource": {{ event.resource.id[:300] | tojson }}, '
            '"occurred": {{ event.occurred.isoformat() | tojson }}, '
            '"received": {{ event.received.isoformat() | tojson }}, "payload": { '
            "{% for name in ['index', 'version', 'dataset', 'chunks'] if name in event.payload %}"
            "{% set value = event.payload[name] %}{{ name | tojson }}: "
            "{% if value is string %}{{ value[:4000] | tojson }}"
            "{% elif value is none or value is boolean %}{{ value | tojson }}"
            "{% elif value is number and -1e15 < value < 1e15 %}{{ value | tojson }}"
            "{% else %}{{ [(value | string)[:200]] | tojson }}{% endif %}"
            "{{ '' if loop.last else ', ' }}{% endfor %} } }"
        ),
    },
}
"""The event as a parameter, with the types of JSON: as plain templates, 7 and "7" would be the same."""

_RUN = "prefect.flow-run."
_ENDS = ("Completed", "Failed", "Cancelled", "Crashed")


def on_index_rebuilt(name: str, index: str, debounce_seconds: float) -> Trigger:
    """Return a trigger that creates a run for each event of an index, due once the quiet period is over.

    The run takes the events of its burst together (see `flows/index_events/debounce.py`).

    Args:
        index: Indexes whose events are accepted, with `*` as a wildcard.
        debounce_seconds: Seconds without a further event that end a burst.
    """
    return {
        **_on_each_event(name, f"{RESOURCE}{index}"),
        "schedule_after": debounce_seconds,
        "parameters": {
            **{field: _text(f"(event.payload.{field} | default('') | string)[:200]") for field in _FIELDS},
            "announced": _text("event.occurred"),
            "event": _EVENT_PARAMETER,
        },
    }


def on_other_index(name: str, index: str) -> Trigger:
    """Return a trigger that creates a run for each event whose resource is not one of these indexes.

    Args:
        index: Indexes whose events another trigger accepts, with `*` as a wildcard.
    """
    return {**_on_each_event(name, f"!{RESOURCE}{index}"), "parameters": {"event": _EVENT_PARAMETER}}


def _on_each_event(name: str, resource: str) -> Trigger:
    """Return a trigger that fires at once for every event: the only kind that fires however old the event is."""
    return {
        "type": "event",
        "name": name,
        "enabled": True,
        "match": {"prefect.resource.id": resource},
        "after": [],
        "expect": [EVENT],
        "for_each": ["prefect.resource.id"],
        "posture": "Reactive",
        "threshold": 1,
        "within": 0,
    }


def on_crash(name: str, tag: str) -> Trigger:
    """Return a trigger that starts a run for each crashed run of the deployments with a tag, with its id."""
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
