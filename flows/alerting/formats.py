"""Convert incidents to the formats of services: PagerDuty, Alertmanager.

These services keep incidents themselves, by a key: they are sent what has changed, one event per incident, so that
they have exactly the incidents open that the history has.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from flows.alerting.alert import Alert, AlertIncident, Severity
from tasks.runtime.wording import shorten

CLIENT = "rag-assay"
SUMMARY_LIMIT = 1024
DEDUP_KEY_LIMIT = 255
_DESCRIPTION_LIMIT = 15_000
_TEST_LASTS = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEvent:
    """An incident as a service gets it.

    Args:
        key: Key of the incident among those of all evaluations.
        severity: Severity, which must be the same as long as the incident is open: it is part of the identity of an
            alert in Alertmanager.
        subject: Name of the evaluation, or the index if only that is known.
        summary: The problem in one line.
        text: All there is to say about it.
        since: Time at which it was found first; None if it is found now.
        time: Time of this event; None for the time at which it is received.
        cause: The part that has changed; empty if that is not known.
        runbook: URL of the page on what to do about it; empty without one.
    """

    key: str
    is_open: bool = True
    severity: Severity
    kind: str
    subject: str
    summary: str
    text: str
    since: datetime | None = None
    time: datetime | None = None
    cause: str = ""
    link: str = ""
    runbook: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


def service_events(alert: Alert, *, with_continuing: bool = False) -> Iterator[ServiceEvent]:
    """Yield the events of an alert, those of incidents that are over last.

    The incidents of an evaluation say everything that services need to know of it: an alert about a further version
    of an index with the same problem has no event. An alert that knows of no evaluation, such as
    one about an event that nothing listens to, is an incident itself, and has the same key the next time. A test opens
    an incident and ends it.

    Args:
        with_continuing: If true, an incident that was open before and still is has an event, too.
    """
    incidents = alert.incidents
    if alert.outcome == "test":
        incidents = (_whole(alert, "opened"), _whole(alert, "resolved"))
    elif not alert.name and not incidents:
        incidents = (_whole(alert, "opened"),)
    for incident in sorted(incidents, key=lambda each: each.status == "resolved"):
        if incident.change != "continuing" or with_continuing:
            yield _event(alert, incident)


def _whole(alert: Alert, change: Any) -> AlertIncident:
    """Return an alert as an incident."""
    return AlertIncident(
        key=f"{_subject(alert)}/{alert.outcome}",
        kind=alert.outcome,
        severity=alert.severity,
        change=change,
        sentence="; ".join(alert.notes) or alert.title,
        since=alert.time,
    )


def _subject(alert: Alert) -> str:
    return CLIENT if alert.outcome == "test" else alert.name or f"index {alert.index}"


def _event(alert: Alert, incident: AlertIncident) -> ServiceEvent:
    subject, link = _subject(alert), alert.report or ""
    details = {
        "evaluation": alert.name,
        "index": alert.index,
        "version": alert.version,
        "since": _iso(incident.since),
        "cause": incident.cause,
        "baseline": alert.baseline or "",
        "folder": alert.folder or "",
        "report": link,
        "flow_run": alert.flow_run,
    }
    return ServiceEvent(
        key=incident.key,
        is_open=incident.status == "open",
        severity=incident.severity,
        kind=incident.kind,
        subject=subject,
        summary=f"{subject}: {incident.sentence}",
        text=alert.text,
        since=incident.since,
        time=alert.time,
        cause=incident.cause,
        link=link if link.startswith(("http://", "https://")) else "",
        runbook=incident.runbook,
        details={name: value for name, value in details.items() if value},
    )


def pagerduty_event(event: ServiceEvent, routing_key: str) -> dict[str, Any]:
    """Return an event of PagerDuty's Events API v2.

    Args:
        routing_key: Integration key of the service.
    """
    content: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "trigger" if event.is_open else "resolve",
        "dedup_key": shorten_key(event.key, DEDUP_KEY_LIMIT),
    }
    if not event.is_open:
        return content
    payload = {
        "summary": shorten(event.summary, SUMMARY_LIMIT),
        "source": event.subject,
        "severity": event.severity,
        "timestamp": "" if event.time is None else _iso(event.time),
        "component": event.cause,
        "group": event.subject,
        "class": event.kind,
    }
    content["payload"] = {name: value for name, value in payload.items() if value}
    content["payload"]["custom_details"] = {**event.details, "text": shorten(event.text, _DESCRIPTION_LIMIT)}
    content["client"] = CLIENT
    links = {"Report": event.link, "Runbook": event.runbook}
    if found := [{"href": url, "text": text} for text, url in links.items() if url]:
        content["links"] = found
    return content


def alertmanager_alert(event: ServiceEvent, keep: timedelta, now: datetime) -> dict[str, Any]:
    """Return an alert of Alertmanager's API v2.

    Alertmanager takes an alert as over at `endsAt`. That of an open incident lies ahead, so that the incident stays
    open until a run ends it; it must not stay forever, because an evaluation that is removed ends nothing.

    Args:
        keep: Time after which an open incident is over if it is not sent again.
        now: Present time, which is later than that of the event if the event is sent again.
    """
    time = event.time or now
    keep = _TEST_LASTS if event.kind == "test" else keep
    labels = {
        "alertname": "RagAssay",
        "severity": event.severity,
        "evaluation": event.subject,
        "kind": event.kind,
        "incident": event.key,
    }
    annotations = {
        "summary": event.summary,
        "description": event.text,
        "cause": event.cause,
        "report": event.link,
        "runbook_url": event.runbook,
    }
    return {
        "labels": labels,
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": _iso(min(event.since or time, time)),
        "endsAt": _iso(now + keep if event.is_open else time),
        **({"generatorURL": event.link} if event.link else {}),
    }


def shorten_key(key: str, limit: int) -> str:
    """Return a key, with a digest instead of its end if it is longer than a limit.

    >>> shorten_key("support/gate", 20), len(shorten_key("support/gate:" + 300 * "x", 255))
    ('support/gate', 255)
    """
    if len(key) <= limit:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    return f"{key[: limit - len(digest) - 1]} {digest}"


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")
