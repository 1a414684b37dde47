"""Keep the incidents of an evaluation: each causes one message when it begins and one when it is over.

Open incidents are in the history, whether or not messages could be delivered, and in a file in ASSAY_HOME: what was
sent while the history could not be used, or before it was lost, is ended too.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flows.alerting.alert import AlertIncident, Severity, Subject
from flows.monitoring.kept_incidents import KeptIncidents
from metric_core.errors import AssayError
from tasks.history.incident import OPENER, Incident, IncidentChanges, IncidentFinding
from tasks.history.incident_log import IncidentLog
from tasks.prefect_support.run_log import run_logger
from tasks.record.outcome import OutcomeIncident, OutcomeIncidents

MISSED = "missed"
"""Kind of the incident that runs were missed, which is over when it is reported, because a run has taken place."""

UNDECIDED = "gate:inconclusive:"
"""Beginning of the keys of incidents that a rule of the gate cannot be decided."""

_VARYING = re.compile(r"\b0x[0-9a-f]+\b|\b(?=[a-f-]*\d)[0-9a-f]+(?:-[0-9a-f]+)*\b|\d[\dtz.,:+-]*")
_HINT = re.compile(r"[.\s]*\bdid you mean\b.*?\?")
_CAUSE = "cause"
"""Name of a detail of an incident in the history."""
_ROUNDING = timedelta(seconds=1)


def error_key(error: BaseException, reason: str) -> str:
    """Return the key of the incident that a run failed.

    It is the same for errors that differ only in numbers, times, ids, and names that they suggest.

    >>> one, two, other = (error_key(ValueError(), f"{text}") for text in ("3 of 8 rows", "10 of 12 rows", "no rows"))
    >>> one == two, one == other, one.partition(":")[0]
    (True, False, 'error')
    >>> error_key(OSError(), "run 20261118-060000, 3f2a9c1d") == error_key(OSError(), "run 20261119-060000, beef0001")
    True
    """
    masked = _VARYING.sub("#", _HINT.sub("", reason.lower()))
    return f"error:{type(error).__name__}:{hashlib.sha256(masked.encode()).hexdigest()[:12]}"


def change_incidents(
    before: Sequence[OutcomeIncident],
    found: Sequence[OutcomeIncident],
    is_over: Callable[[OutcomeIncident], bool] = lambda _incident: True,
    replaced: Collection[str] = (),
) -> OutcomeIncidents:
    """Return the changes of the incidents of an evaluation by a run.

    Args:
        before: Incidents that were open before the run.
        is_over: Function that returns whether an open incident that the run did not find is over.
        replaced: Keys of open incidents that found ones replace, or that are no longer checked.

    >>> from datetime import datetime
    >>> start = datetime(2026, 11, 18)
    >>> one, two = (OutcomeIncident(key=key, kind="gate", sentence=key, since=start) for key in "ab")
    >>> changes = change_incidents([one], [two])
    >>> [incident.key for incident in changes.opened], [incident.key for incident in changes.recovered]
    (['b'], ['a'])
    """
    earlier = {incident.key: incident for incident in before}
    now = {incident.key: incident for incident in found}
    again = [_continue(earlier[key], incident) for key, incident in now.items() if key in earlier]
    absent = [incident for key, incident in earlier.items() if key not in now and key not in replaced]
    return OutcomeIncidents(
        opened=tuple(incident for key, incident in now.items() if key not in earlier),
        continuing=(*again, *(incident for incident in absent if not is_over(incident))),
        recovered=tuple(incident for incident in absent if is_over(incident)),
        replaced=tuple(incident for key, incident in earlier.items() if key not in now and key in replaced),
    )


def _continue(earlier: OutcomeIncident, found: OutcomeIncident) -> OutcomeIncident:
    """Return an incident that was found again; its cause stays known even if this run does not show it."""
    is_known = found.cause not in ("", "unknown")
    changes = {"since": earlier.since, "run_id": earlier.run_id, "cause": found.cause if is_known else earlier.cause}
    return found.model_copy(update={name: value for name, value in changes.items() if value})


def subject_of_alert(incidents: OutcomeIncidents) -> Subject:
    """Return what an alert is about: what the run has opened, or else what is over."""
    opened = [each for each in incidents.opened if each.kind != MISSED]
    if not opened:
        return "partly recovered" if incidents.continuing else "recovered"
    found = {"inconclusive" if _is_undecided(each) else _SUBJECTS.get(each.kind, "attention") for each in opened}
    return next((subject for subject in _ORDER if subject in found), "attention")


_SUBJECTS: Mapping[str, Subject] = {
    "error": "error",
    "gate": "failed",
    "alarm": "worse",
    "comparison": "inconclusive",
}
"""Subjects of alerts by the kind of the incident that is opened; for other kinds it is "attention"."""
_ORDER: Sequence[Subject] = ("error", "failed", "worse", "inconclusive")
_WARNINGS = ("comparison", "source", "cost", "missed", "record")
"""Kinds of incidents that are warnings, not errors."""


def _is_undecided(incident: OutcomeIncident) -> bool:
    return incident.key.startswith(UNDECIDED)


def _severity(incident: OutcomeIncident) -> Severity:
    return "warning" if incident.kind in _WARNINGS or _is_undecided(incident) else "error"


def alert_incidents(
    name: str, incidents: OutcomeIncidents, *, with_continuing: bool = True
) -> tuple[AlertIncident, ...]:
    """Return the incidents of an evaluation for an alert.

    Args:
        with_continuing: True repeats incidents that earlier alerts were about.
    """
    changes: dict[Any, tuple[OutcomeIncident, ...]] = {
        "opened": tuple(each for each in incidents.opened if each.kind != MISSED),
        "continuing": incidents.continuing if with_continuing else (),
        "resolved": (*incidents.recovered, *(each for each in incidents.opened if each.kind == MISSED)),
        "replaced": incidents.replaced,
    }
    return tuple(
        AlertIncident(
            key=f"{name}/{each.key}",
            kind=each.kind,
            severity=_severity(each),
            change=change,
            sentence=each.sentence,
            since=each.since,
            cause=each.cause,
        )
        for change, found in changes.items()
        for each in found
    )


@dataclass(frozen=True, slots=True)
class IncidentBook:
    """The open incidents of an evaluation, in the history and in a file beside it.

    The file remains if the history is lost or could not be written: incidents that people were notified of still end.
    A flow run that is resumed after a crash may find that it has written its changes: it reads the incidents as
    they were before it, so that it makes the same changes again.

    Args:
        history: Address of the history, as the option `history`.
    """

    history: str | None
    name: str
    flow_run: str

    def read(self) -> tuple[OutcomeIncident, ...]:
        """Return the incidents that were open before the flow run, oldest first.

        Those that only the file knows are added to the history.
        """
        file = KeptIncidents(self.history, self.name)
        found: Sequence[Incident] | None = self._use(lambda log: log.incidents(self.name))
        if found is None:
            return file.read()
        if lost := [each for each in file.read() if not _is_recorded(each, found)]:
            self._use(lambda log: [log.open_incident(self.name, self._finding(each, is_new=False)) for each in lost])
        known = (
            OutcomeIncident.model_validate(
                {
                    **{name: getattr(each, name) for name in ("key", "kind", "sentence", "run_id")},
                    "since": each.opened,
                    "cause": each.details.get(_CAUSE, ""),
                }
            )
            for each in found
            if each.details.get(OPENER) != self.flow_run and (each.closed is None or self._has_closed(each))
        )
        return tuple(sorted([*known, *lost], key=lambda each: (each.since, each.key)))

    def changes(self, incidents: OutcomeIncidents) -> IncidentChanges:
        """Return the changes of the flow run, to be written with the messages about them."""
        return IncidentChanges(
            opened=tuple(self._finding(each, is_new=True) for each in incidents.opened if each.kind != MISSED),
            continuing=tuple(self._finding(each, is_new=False) for each in incidents.continuing),
            closed=tuple(each.key for each in (*incidents.recovered, *incidents.replaced)),
            flow_run=self.flow_run,
        )

    def keep(self, incidents: OutcomeIncidents) -> None:
        """Write what is open after the flow run to the file."""
        known = (*incidents.continuing, *incidents.opened)
        KeptIncidents(self.history, self.name).write([each for each in known if each.kind != MISSED])

    def _finding(self, incident: OutcomeIncident, *, is_new: bool) -> IncidentFinding:
        details = {_CAUSE: incident.cause, OPENER: self.flow_run if is_new else ""}
        named = (incident.key, incident.kind, incident.sentence)
        return IncidentFinding(*named, found=incident.since, run_id=incident.run_id, details=details)

    def _has_closed(self, incident: Incident) -> bool:
        return incident.closing_run_id == self.flow_run

    def _use(self, work: Callable[[IncidentLog], Any]) -> Any:
        try:
            return work(IncidentLog(self.history))
        except AssayError as error:
            run_logger().warning(
                "open incidents are not known, so each run reports all that it finds: %s", error, exc_info=False
            )
            return None


def _is_recorded(incident: OutcomeIncident, found: Sequence[Incident]) -> bool:
    """Return whether the history knows an incident, and so whether it is over."""
    return any(each.key == incident.key and each.opened >= incident.since - _ROUNDING for each in found)
