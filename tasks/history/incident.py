"""Define the records of incidents: something that is wrong from one run until it is over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

OPENER = "flow_run"
"""Name of the detail of an incident that says which flow run opened it."""


@dataclass(frozen=True, slots=True)
class IncidentFinding:
    """Something that was found wrong.

    Args:
        key: Name of the problem among those of an evaluation, such as `alarm:faithfulness`: an incident is open once at
            a time.
        kind: Kind of the problem, such as `gate`, `alarm` or `missed`.
        found: Time at which it was found; None means now.
        run_id: Id of the run that found it; empty if no run did.
        details: Further content, as JSON.
    """

    key: str
    kind: str
    sentence: str
    found: datetime | None = None
    run_id: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IncidentChanges:
    """The changes of the incidents of an evaluation by a run.

    Args:
        opened: Problems that the run found first; their details name the flow run as OPENER.
        continuing: Problems that were found before, and again.
        closed: Keys of the problems that are over.
        flow_run: Id of the flow run.
    """

    opened: tuple[IncidentFinding, ...] = ()
    continuing: tuple[IncidentFinding, ...] = ()
    closed: tuple[str, ...] = ()
    flow_run: str = ""


@dataclass(frozen=True, slots=True)
class ChangedIncidents:
    """The changes that a run has made itself: another one at the same time may have made some of them.

    Args:
        opened: Keys of the incidents that the run has opened.
        closed: Keys of the incidents that the run has closed.
    """

    opened: frozenset[str]
    closed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident.

    Args:
        key: Name of the problem; see `IncidentFinding`.
        sentence: The problem in words, as it was last found.
        opened: Time at which it was first found.
        seen: Time at which it was last found.
        closed: Time at which it was over; None while it is open.
        times: Number of times it was found.
        run_id: Id of the run that opened it; empty if no run did.
        closing_run_id: Id of the run that closed it; empty if no run did.
        details: Further content, as it was last found.
    """

    incident_id: str
    name: str
    key: str
    kind: str
    sentence: str
    opened: datetime
    seen: datetime
    closed: datetime | None = None
    times: int = 1
    run_id: str = ""
    closing_run_id: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Whether it has been found once, so that it must be reported."""
        return self.times == 1
