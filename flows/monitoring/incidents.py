"""Tell people of an incident once when it begins and once when it is over, however many runs find it.

Open incidents are in the history. If it cannot be used, each run tells all that it finds: an alert too many is better
than none.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from prefect.logging import get_run_logger

from metric_core.errors import AssayError
from tasks.history.incident import IncidentFinding
from tasks.history.incident_log import IncidentLog
from tasks.runs.outcome import OutcomeIncident, OutcomeIncidents

MISSED = "missed"
"""Kind of the incident that runs were missed, which is over when people are told of it: a run has taken place."""


def change_incidents(
    before: Sequence[OutcomeIncident],
    found: Sequence[OutcomeIncident],
    is_over: Callable[[OutcomeIncident], bool] = lambda _incident: True,
    replaced: Collection[str] = (),
) -> OutcomeIncidents:
    """Return the changes of the incidents of an evaluation by a run.

    Args:
        before: Incidents that were open before the run.
        found: Incidents that the run found.
        is_over: Function that returns whether an open incident that the run did not find is over.
        replaced: Keys of open incidents that found ones replace.

    >>> from datetime import datetime
    >>> start = datetime(2026, 11, 18)
    >>> one, two = (OutcomeIncident(key=key, kind="gate", sentence=key, since=start) for key in "ab")
    >>> changes = change_incidents([one], [two])
    >>> [incident.key for incident in changes.opened], [incident.key for incident in changes.recovered]
    (['b'], ['a'])
    """
    earlier = {incident.key: incident for incident in before}
    now = {incident.key: incident for incident in found}
    again = [
        incident.model_copy(update={"since": earlier[key].since, "run_id": earlier[key].run_id})
        for key, incident in now.items()
        if key in earlier
    ]
    absent = [incident for key, incident in earlier.items() if key not in now and key not in replaced]
    return OutcomeIncidents(
        opened=tuple(incident for key, incident in now.items() if key not in earlier),
        continuing=(*again, *(incident for incident in absent if not is_over(incident))),
        recovered=tuple(incident for incident in absent if is_over(incident)),
    )


class IncidentBook:
    """The open incidents of an evaluation, in the history.

    Args:
        history: Address of the history, as the option `history`.
        name: Name of the evaluation.
    """

    def __init__(self, history: str | None, name: str) -> None:
        self.name = name
        self._history = history

    def read(self) -> tuple[OutcomeIncident, ...]:
        """Return the open incidents, oldest first; none if the history cannot be read."""
        found = self._use(lambda history: history.open_incidents(self.name))
        names = ("key", "kind", "sentence", "run_id")
        contents = ({name: getattr(each, name) for name in names} | {"since": each.opened} for each in found or ())
        return tuple(OutcomeIncident.model_validate(content) for content in contents)

    def write(self, incidents: OutcomeIncidents, replaced: Collection[str], run_id: str, *, told: bool) -> None:
        """Write the changes of a run.

        Args:
            incidents: The changes.
            replaced: Keys of incidents that are over without a word.
            run_id: Id of the run.
            told: False if no recipient received the alert: then new incidents are told again by the next run.
        """

        def work(history: IncidentLog) -> None:
            for each in (*incidents.continuing, *(incidents.opened if told else ())):
                if each.kind != MISSED:
                    found = each.since if each in incidents.opened else None
                    finding = IncidentFinding(each.key, each.kind, each.sentence, found=found, run_id=run_id)
                    history.open_incident(self.name, finding)
            over = {each.key for each in incidents.recovered} if told else set()
            for key in (*over, *replaced):
                history.close_incident(self.name, key, run_id=run_id)

        self._use(work)

    def _use(self, work: Callable[[IncidentLog], Any]) -> Any:
        try:
            return work(IncidentLog(self._history))
        except AssayError as error:
            get_run_logger().warning(
                "open incidents are not known, so each run tells all that it finds: %s", error, exc_info=False
            )
            return None
