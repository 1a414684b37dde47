"""Describe an alert about a monitored evaluation: what has opened, what is over, and where to look."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "error", "warning", "info"]
Status: TypeAlias = Literal["open", "resolved"]
Subject: TypeAlias = Literal[
    "failed", "inconclusive", "worse", "error", "attention", "partly recovered", "recovered", "test"
]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "critical")
"""Severities, the least first."""

REPORTED = "an alert about this error was sent to the recipients in deploy.alerts"
REPORTED_BEFORE = "an earlier alert was about this error, which has not been over since"
NO_RECIPIENT = "no recipient is set in deploy.alerts; the alert about this error is in ASSAY_HOME/alerts.jsonl"

SILENCED = "messages are silenced: this error is reported at the end of the silence, unless it is over by then"

NOT_DELIVERED = "not delivered: "
"""Notes on errors that were reported, and beginning of the note for a recipient that was not reached."""

_OF_INDEX = {
    "failed": "was not accepted: the gate failed",
    "inconclusive": "was not accepted: the gate is inconclusive",
    "worse": "is worse than the baseline",
    "error": "could not be evaluated",
    "attention": "needs attention",
    "partly recovered": "has partly recovered",
    "recovered": "has recovered",
}
_OF_EVALUATION = {
    **_OF_INDEX,
    "failed": "has failed its gate",
    "inconclusive": "is inconclusive",
    "error": "could not be finished",
}
_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertIncident:
    """An incident in an alert.

    Args:
        key: Key of the incident among those of all evaluations: the name of the evaluation, a slash, and the key of
            the incident in it. It is the same in the message that opens the incident and in the one that ends it, and
            for the same problem on a later day.
        kind: Kind of the problem, as `OutcomeIncident.kind`.
        change: Change of the incident by the run. One that is replaced ends without a message.
        since: Time at which it was found first.
        cause: The part that has changed, such as the system or the judge; empty if that is not known.
        runbook: URL of the page on what to do about it; empty without one.
    """

    key: str
    kind: str
    severity: Severity = "error"
    change: Literal["opened", "continuing", "resolved", "replaced"]
    sentence: str
    since: datetime
    cause: str = ""
    runbook: str = ""

    @property
    def status(self) -> Status:
        """Whether the incident is open after the run."""
        return "resolved" if self.change in ("resolved", "replaced") else "open"

    @property
    def content(self) -> dict[str, Any]:
        """The incident as JSON."""
        return {**asdict(self), "status": self.status, "since": self.since.isoformat(timespec="seconds")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert about an evaluation, which may be about a version of an index.

    Args:
        name: Name of the evaluation; empty if only the index is known.
        index: Id of the index; empty if the evaluation is about none.
        version: Version that did not become the baseline, or the time at which the run started.
        outcome: Subject of the alert, which follows from what has changed: an outcome of the gate, "failed" or
            "inconclusive"; "worse" for an alarm of the sequential tests; "error" for a run that could not be finished;
            "attention" for anything else that is wrong; "recovered" if all that was wrong is over, "partly recovered"
            if something of it is; "test" for a message that tests the recipients.
        incidents: Incidents that the run opened, found again or found over.
        opening: Sentences that come first, because they explain the others.
        notes: Further sentences on what got worse and what has changed.
        baseline: The version that stays the baseline.
        folder: The run folder; None if there is none.
        report: URL of the report, or of the comparison with the baseline.
        flow_run: Id of the flow run, or of an attempt that no flow run was made for.
        time: Time at which the run found all this.
        remark: A sentence on the message itself, such as why it is late.
    """

    name: str = ""
    index: str = ""
    version: str = ""
    outcome: Subject
    incidents: tuple[AlertIncident, ...] = ()
    opening: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    folder: str | None = None
    report: str | None = None
    flow_run: str
    time: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    remark: str = ""

    @property
    def id(self) -> str:
        """The identity of the alert, which is the same if a run that is resumed finds the same changes again."""
        changes = sorted((each.key, each.change) for each in self.incidents if each.change != "continuing")
        about = [self.index, self.version] if self.index else []  # a run is resumed at another time
        content = [self.flow_run, self.name, *about, self.outcome, changes]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    @property
    def status(self) -> Status:
        """Whether anything is wrong after the run."""
        is_open = any(incident.status == "open" for incident in self.incidents)
        return "open" if is_open or self.outcome != "recovered" else "resolved"

    @property
    def is_quiet(self) -> bool:
        """Whether no message is needed: incidents are replaced, and no other has changed."""
        changes = {incident.change for incident in self.incidents} - {"continuing"}
        return changes == {"replaced"} and self.outcome in ("recovered", "partly recovered")

    @property
    def severity(self) -> Severity:
        """The severity of the worst incident that is open."""
        found = [incident.severity for incident in self.incidents if incident.status == "open"]
        return max(found, key=SEVERITIES.index, default="info" if self.outcome in ("recovered", "test") else "error")

    @property
    def links(self) -> Mapping[str, str]:
        """Pages to look at, by their names."""
        pages = {} if self.report is None else {"Report": self.report}
        books = {each.runbook: each.kind for each in self.incidents if each.runbook and each.status == "open"}
        return pages | {f"Runbook, {kind}" if len(books) > 1 else "Runbook": url for url, kind in books.items()}

    @property
    def title(self) -> str:
        """The alert in one line."""
        if self.outcome == "test":
            return "test of the alerts of rag-assay: nothing has happened"
        if self.index:
            title = f"index {self.index}, version {self.version} {_OF_INDEX[self.outcome]}"
        else:
            title = f"evaluation {self.name} {_OF_EVALUATION[self.outcome]}"
        if self.outcome != "partly recovered":
            return title
        count = sum(incident.status == "open" for incident in self.incidents)
        return f"{title}: {count} {'problem is' if count == 1 else 'problems are'} still open"

    @property
    def text(self) -> str:
        """The alert as plain text."""
        lists = self._lists
        lines = [self.title, *(f"- {sentence}" for sentence in lists["worse"])]
        for heading, name in (("Over:", "recovered"), ("Still open:", "continuing")):
            lines += [heading, *(f"- {sentence}" for sentence in lists[name])] if lists[name] else []
        if self.baseline is not None:
            what = "version" if self.index else "the run of"
            lines.append(f"The baseline stays {what} {self.baseline}.")
        lines += [f"{name}: {url}" for name, url in self.links.items()]
        lines += [self.remark] if self.remark else []
        return "\n".join(lines)

    @property
    def content(self) -> dict[str, Any]:
        """The alert as JSON; chat services show `text`."""
        return {
            "id": self.id,
            "title": self.title,
            "text": self.text,
            "status": self.status,
            "severity": self.severity,
            **{name: value for name, value in asdict(self).items() if name not in ("opening", "notes")},
            "time": self.time.isoformat(timespec="seconds"),
            "incidents": [incident.content for incident in self.incidents],
            "links": {**self.links},
            **self._lists,
        }

    @property
    def _lists(self) -> dict[str, list[str]]:
        return {
            "worse": [*self.opening, *self._sentences("opened"), *self.notes],
            "recovered": [*self._sentences("resolved")],
            "continuing": [*self._sentences("continuing")],
        }

    def _sentences(self, change: str) -> Iterator[str]:
        for incident in self.incidents:
            if incident.change == change:
                since = f" (since {incident.since:%Y-%m-%d %H:%M})" if change == "continuing" else ""
                yield f"{incident.sentence}{since}"


def show_value(value: Any) -> str:
    """Return an index or a version as an alert names it, even if it is missing or invalid.

    >>> show_value("v1"), show_value(None), show_value(True)
    ('v1', '?', 'True')
    """
    return "?" if value is None else str(value)[:_SHOWN] or "?"


def has_told(error: BaseException) -> bool:
    """Return whether an error was reported, according to its notes."""
    notes = getattr(error, "__notes__", ())
    known = (REPORTED, REPORTED_BEFORE, NO_RECIPIENT, SILENCED)
    return any(note in known or note.startswith(NOT_DELIVERED) for note in notes)
