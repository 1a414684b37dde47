"""Define the records of incidents: something that is wrong from one run until it is over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


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
