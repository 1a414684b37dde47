"""Watch scheduled runs from the Prefect server: automations that report what a run cannot report itself.

A run that never started cannot send an alert, and neither can one whose process died. The server can, without any
worker: it calls a webhook and sends notifications itself. Four things are reported, each once until it is over:

- late: a run was due, and no worker has started it; or it crashed, and nothing has resumed it
- missing: no run was even due, because the schedule is paused or the server's scheduler is down
- stuck: a run was still going on when the next was due
- failed: a run failed before it could report anything, such as one with parameters that are not valid, or one that
  crashed too often to be resumed

A sequence of triggers makes it once: a run must have started (ended, for `failed`) between two reports. Deploying
counts as that, by the event `rag.deployment.watched`, so that a first run that never starts is reported too. The end of
what is reported becomes a message too: of the next run where it knows of it, and else of the server.

Prefect handles the events of a run that was made less than five minutes before it is due 15 minutes late: they say that
they follow the event of its first state, which Prefect never sends for runs of a schedule. A run that starts sends it
itself. Of one that never starts, and was due within five minutes of deploying or of resuming a schedule, nothing is
heard for 15 minutes. That must not be taken for its absence: see `_UNHEARD` and `WATCHED`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, Self
from uuid import UUID

from prefect.events.actions import ActionTypes, CallWebhook, SendNotification
from prefect.events.schemas.automations import AutomationCore, CompoundTrigger, EventTrigger, Posture, SequenceTrigger

from deployments.registry.report_events import WATCHED
from deployments.registry.schedules import Gaps
from deployments.registry.templates import Field, json_template, literal
from flows.alerting.alert import Alert, AlertIncident, Subject
from flows.monitoring.closing import STUCK, UNREPORTED
from flows.monitoring.missed_runs import KEY as MISSED
from flows.monitoring.missed_runs import WAITS

_RUN = "prefect.flow-run."
_STARTED, _CRASHED = f"{_RUN}Running", f"{_RUN}Crashed"
_PASSED = ("Completed", "Accepted", "Passed", "Superseded", "Recovering")
_REPORTED_ENDS = (*_PASSED, "Inconclusive", "Gate failed", "Worse", "Error")
"""Names of the final states of runs that have reported themselves, or had nothing to report."""
_ENDS = (*_REPORTED_ENDS, "Failed", "Budget spent", "Crashed", "Cancelled")
_DEPLOYMENT = "related:deployment:prefect.resource.id"
_LEAST = timedelta(seconds=10)
"""Shortest time that a proactive trigger of Prefect may wait."""

_UNHEARD = timedelta(minutes=20)
"""Time for which nothing may be heard of a run that was due: 15 minutes, and some for the server's services."""

_WAITS = f"{_RUN}{WAITS}"
"""The event that a run waits for another of its deployment to end: a worker has taken it."""

_DUE = (
    "{% if flow_run and flow_run.expected_start_time %}"
    "the run of {{ flow_run.expected_start_time.strftime('%Y-%m-%d %H:%M %Z') }}"
    "{% else %}the run {{ event.resource.name }}{% endif %}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedDeployment:
    """A deployment whose scheduled runs are watched.

    Args:
        evaluation: Name of the evaluation, as messages say it.
        gaps: Times between two of its runs.
        patience: Time after which a run that has not started is reported.
    """

    id: UUID
    name: str
    evaluation: str
    pool: str
    gaps: Gaps
    patience: timedelta

    @property
    def resource(self) -> str:
        """The deployment as events name it."""
        return f"prefect.deployment.{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A message of the server, as templates that the event fills in.

    Args:
        key: Key of the incident among those of the evaluation: the run that comes next ends the incident by it.
        title: The message in one line.
        text: Advice on how to solve it.
        end: The message in one line that it is over; empty if the next run says so.
    """

    kind: str
    key: str
    title: str
    text: str
    end: str = ""


@dataclass(frozen=True, slots=True)
class Recipients:
    """Blocks on the server that messages are sent to.

    Args:
        webhooks: Ids of webhook blocks.
        notifications: Ids of notification blocks.
        services: Services that keep incidents, and so get their ends, too.
    """

    webhooks: tuple[UUID, ...] = ()
    notifications: tuple[UUID, ...] = ()
    services: tuple["WatchingService", ...] = ()

    @classmethod
    def union(cls, parts: Iterable[Self]) -> Self:
        """Return all recipients of some."""
        names = ("webhooks", "notifications", "services")
        found = list(parts)
        return cls(**{name: tuple(each for part in found for each in getattr(part, name)) for name in names})

    def actions(self, deployment: WatchedDeployment, report: Report) -> list[ActionTypes]:
        """Return the actions that send a report to all recipients."""
        sent = self._send(_payload(deployment, report), report.title, f"{report.title}\n{report.text}")
        return [*sent, *(each.opening(deployment, report) for each in self.services)]

    def endings(self, deployment: WatchedDeployment, report: Report) -> list[ActionTypes]:
        """Return the actions that say that a report is over to those who do not hear it from the next run."""
        sent = self._send(_payload_of_end(deployment, report), report.end, report.end) if report.end else []
        return [*sent, *(each.ending(deployment, report) for each in self.services)]

    def _send(self, payload: str, subject: str, body: str) -> list[ActionTypes]:
        """Return the actions that send a message to people."""
        return [
            *(CallWebhook(block_document_id=each, payload=payload) for each in self.webhooks),
            *(SendNotification(block_document_id=each, subject=subject, body=body) for each in self.notifications),
        ]


class WatchingService(Protocol):
    """A service that keeps incidents by their keys."""

    def opening(self, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        """Return the action that opens the incident of a report."""
        ...

    def ending(self, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        """Return the action that ends it."""
        ...


def watch_automations(prefix: str, deployment: WatchedDeployment, recipients: Recipients) -> Iterator[AutomationCore]:
    """Yield the automations that report scheduled runs which did not start or end as they should.

    Args:
        prefix: Start of the automations' names, to which the kind is added.
        recipients: Recipients of the reports; without one, nothing is reported.
    """
    for report, trigger in _watches(deployment):
        specified = (
            (report.kind, "Report a scheduled run of rag-assay that cannot report itself.", trigger),
            (f"{report.kind} over", "Report that this is over.", _over(deployment, report, trigger)),
        )
        actions = (recipients.actions(deployment, report), recipients.endings(deployment, report))
        for (kind, description, when), then in zip(specified, actions, strict=True):
            if then:
                yield AutomationCore(
                    name=f"{prefix}: {kind}",
                    description=description,
                    enabled=True,
                    trigger=when,
                    actions=[*then],
                    owner_resource=deployment.resource,
                )


def _over(deployment: WatchedDeployment, report: Report, trigger: EventTrigger | SequenceTrigger) -> SequenceTrigger:
    """Return a trigger that fires once the problem that another finds is over."""
    problem = trigger.triggers[-1] if isinstance(trigger, SequenceTrigger) else trigger
    # A run that has crashed is resumed, and so has not ended.
    ends = {"stuck": tuple(end for end in _ENDS if end != "Crashed"), "failed": _REPORTED_ENDS}.get(report.kind)
    expected = (_STARTED,) if ends is None else tuple(f"{_RUN}{end}" for end in ends)
    return SequenceTrigger(triggers=[problem, _seen(deployment, expected)], within=None)


def _watches(deployment: WatchedDeployment) -> Iterator[tuple[Report, EventTrigger | SequenceTrigger]]:
    """Yield the problems of a deployment's runs, each with the trigger that finds it."""
    patience = max(deployment.patience, _LEAST)
    evaluation, waited = literal(deployment.evaluation), describe_duration(patience)
    start = f"prefect worker start --pool {deployment.pool}"
    once = "There is no further message until a run has started."
    yield (
        Report(
            kind="late",
            key=MISSED,
            title=f"evaluation {evaluation} has not run: {_DUE} "
            "{% if event.resource['prefect.state-name'] == 'Crashed' %}crashed and was not resumed"
            "{% else %}has not started{% endif %}",
            text=f"No worker has taken it for {waited}: start one ({start}), or resume the work pool or its queue. "
            f"{once}",
        ),
        SequenceTrigger(
            triggers=[
                _seen(deployment, (_STARTED, WATCHED)),
                # Prefect forgets a time that was over when it handled the event which began it.
                CompoundTrigger(
                    triggers=[_unstarted(deployment, each) for each in sorted({patience, max(patience, _UNHEARD)})],
                    require="any",
                    within=None,
                ),
            ],
            within=None,
        ),
    )
    longest = deployment.gaps.longest + max(patience, _UNHEARD)
    # A run that waits for another to end is not missing; the other is reported as stuck.
    signs = (WATCHED, f"{_RUN}Pending", _STARTED, f"{_RUN}Late", _WAITS)
    yield (
        Report(
            kind="missing",
            key=MISSED,
            title=f"evaluation {evaluation} has not run: no run was due for {describe_duration(longest)}",
            text=f"The deployment {deployment.name} or its schedule is paused or removed, or the scheduler of the "
            f"Prefect server is down. {once}",
        ),
        _absent(deployment, signs, signs, longest),
    )
    period = max(deployment.gaps.shortest, _LEAST) + patience
    yield (
        Report(
            kind="stuck",
            key=STUCK,
            title=f"evaluation {evaluation} has not finished: {_DUE} has been running for {describe_duration(period)}",
            text="The next run was due, and waits for it. Look at its log; end it with prefect flow-run cancel "
            "{{ event.resource.id | replace('prefect.flow-run.', '') }} if it does nothing.",
            end=f"evaluation {evaluation} has finished: {_DUE} has ended",
        ),
        _absent(
            deployment,
            (_STARTED,),
            (_STARTED, *(f"{_RUN}{end}" for end in _ENDS)),  # one that is resumed after a crash starts again
            period,
            for_each="prefect.resource.id",
        ),
    )
    yield (
        Report(
            kind="failed",
            key=UNREPORTED,
            title=f"evaluation {evaluation} could not be finished: {_DUE} failed before it could report",
            text="The log of the flow run {{ event.resource.name }} says why: prefect flow-run logs "
            "{{ event.resource.id | replace('prefect.flow-run.', '') }}. There is no further message until a run has "
            "ended.",
            end=f"evaluation {evaluation} reports again: {_DUE} has ended",
        ),
        SequenceTrigger(
            triggers=[
                _seen(deployment, (WATCHED, *(f"{_RUN}{end}" for end in _REPORTED_ENDS))),
                _seen(deployment, (f"{_RUN}Failed", f"{_RUN}Budget spent")),
            ],
            within=None,
        ),
    )


def _unstarted(deployment: WatchedDeployment, within: timedelta) -> EventTrigger:
    """Return a trigger that fires if no run has started within a time after one was late or crashed.

    A crash is expected too, so that the time counts from it: it may follow a late start.
    """
    expected = (_STARTED, _CRASHED, _WAITS, f"{_RUN}Failed", f"{_RUN}Cancelled")
    return _absent(deployment, (f"{_RUN}Late", _CRASHED), expected, within)


def describe_duration(duration: timedelta) -> str:
    """Return a duration in words.

    >>> [describe_duration(timedelta(minutes=minutes)) for minutes in (15, 24 * 60 + 15, 1.5)]
    ('15 minutes', '24 h 15 min', '90 s')
    """
    seconds = round(duration.total_seconds())
    minutes = seconds // 60
    if minutes < 2 or (seconds % 60 and minutes < 10):
        return f"{seconds} s"
    if minutes < 60:
        return f"{minutes} minutes"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def _seen(deployment: WatchedDeployment, expected: tuple[str, ...]) -> EventTrigger:
    """Return a trigger that fires for each of these events."""
    return EventTrigger(
        match={"prefect.resource.id": [f"{_RUN}*", f"{WATCHED}.*"]},
        match_related=_related(deployment),
        expect=set(expected),
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
    )


def _absent(
    deployment: WatchedDeployment,
    after: tuple[str, ...],
    expected: tuple[str, ...],
    within: timedelta,
    for_each: str = _DEPLOYMENT,
) -> EventTrigger:
    """Return a trigger that fires if no expected event follows one of some events in time.

    Without `for_each`, Prefect would fire in every period without such an event, whatever came before.
    """
    return EventTrigger(
        match={"prefect.resource.id": [f"{_RUN}*", f"{WATCHED}.*"]},
        match_related=_related(deployment),
        after=set(after),
        expect=set(expected),
        for_each={for_each},
        posture=Posture.Proactive,
        threshold=1,
        within=within,
    )


def _related(deployment: WatchedDeployment) -> dict[str, Any]:
    return {"prefect.resource.role": "deployment", "prefect.resource.id": deployment.resource}


def _payload(deployment: WatchedDeployment, report: Report) -> str:
    """Return a template of the JSON that alerts of runs have too."""
    title, text = Field.TITLE.mark, Field.TEXT.mark
    content = _alert(deployment, report, is_open=True).content
    content |= {"text": f"{title}\n{text}", "outcome": "missed", "worse": [text]}
    return _template(content, report, title=report.title, text=report.text)


def _payload_of_end(deployment: WatchedDeployment, report: Report) -> str:
    """Return a template of the JSON that a report is over."""
    content = _alert(deployment, report, is_open=False).content | {"text": Field.TITLE.mark}
    return _template(content, report, title=report.end)


def _alert(deployment: WatchedDeployment, report: Report, *, is_open: bool) -> Alert:
    incident = AlertIncident(
        key=incident_key(deployment, report),
        kind=incident_kind(report),
        change="opened" if is_open else "resolved",
        sentence=Field.TITLE.mark,
        since=datetime.now(UTC),
    )
    outcome: Subject = "error" if is_open else "recovered"
    return Alert(name=deployment.evaluation, outcome=outcome, incidents=(incident,), flow_run=Field.FLOW_RUN.mark)


def _template(content: dict[str, Any], report: Report, **variables: str) -> str:
    time = Field.TIME.mark
    found = {**content, "id": f"{Field.ID.mark} {report.kind}", "title": Field.TITLE.mark, "kind": report.kind}
    found |= {"time": time, "incidents": [{**each, "since": time} for each in content["incidents"]]}
    return json_template(found, **variables)


def incident_key(deployment: WatchedDeployment, report: Report) -> str:
    """Return the key of the incident of a report among those of all evaluations."""
    return f"{deployment.evaluation}/{report.key}"


def incident_kind(report: Report) -> Literal["missed", "error"]:
    """Return the kind of the incident of a report, as runs have it."""
    return "missed" if report.key == MISSED else "error"
