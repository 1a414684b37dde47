"""Open and close incidents: the part of the history that says what is wrong now."""

import uuid
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, select, update

from tasks.history.history_database import HistoryDatabase
from tasks.history.history_tables import INCIDENTS
from tasks.history.incident import Incident, IncidentFinding


class IncidentLog(HistoryDatabase):
    """The incidents in the history. Several threads, processes and machines may use it.

    Args:
        url: Address of the database, as in the option `history`; None means a file in ASSAY_HOME.
    """

    def open_incidents(self, name: str) -> list[Incident]:
        """Return the incidents of an evaluation that are not over, oldest first.

        Raises:
            ConfigError: The database cannot be used.
        """
        return self._find_incidents(select(INCIDENTS).where(INCIDENTS.c.name == name, INCIDENTS.c.is_open == 1))

    def incidents(self, name: str | None = None) -> list[Incident]:
        """Return all incidents, oldest first.

        Args:
            name: Name of the evaluation; None for all.

        Raises:
            ConfigError: The database cannot be used.
        """
        query = select(INCIDENTS)
        return self._find_incidents(query if name is None else query.where(INCIDENTS.c.name == name))

    def open_incident(self, name: str, finding: IncidentFinding) -> Incident:
        """Open an incident, or note that an open one was found again.

        Of several processes that open the same incident, one gets it as new (`Incident.is_new`).

        Args:
            finding: The problem; its sentence and details replace those of an open incident.

        Raises:
            ConfigError: The database cannot be used.
        """
        time = (finding.found or datetime.now(UTC)).timestamp()
        values = {
            "incident_id": uuid.uuid4().hex,
            "name": name,
            "key": finding.key,
            "kind": finding.kind,
            "is_open": 1,
            "opened": time,
            "seen": time,
            "times": 1,
            "sentence": finding.sentence,
            "run_id": finding.run_id,
            "closing_run_id": "",
            "details": dict(finding.details),
        }
        found = select(INCIDENTS).where(
            INCIDENTS.c.name == name, INCIDENTS.c.key == finding.key, INCIDENTS.c.is_open == 1
        )

        def work(connection: Connection) -> Incident:
            insertion = self.database.insert(INCIDENTS).values(values)
            again: dict[str, ColumnElement[Any]] = {
                column: insertion.excluded[column] for column in ("seen", "sentence", "details")
            }
            again["times"] = INCIDENTS.c.times + 1
            same = ["name", "key", "is_open"]
            connection.execute(insertion.on_conflict_do_update(index_elements=same, set_=again))
            return _incident(connection.execute(found).one())

        with self.translate_errors("written"):
            return self.database.write(work)

    def close_incident(self, name: str, key: str, *, at: datetime | None = None, run_id: str = "") -> Incident | None:
        """Close an open incident.

        Args:
            at: Time at which it was over; None means now.
            run_id: Id of the run that found it over; empty if no run did.

        Returns:
            The closed incident; None if it was not open, so that only one of several processes reports it.

        Raises:
            ConfigError: The database cannot be used.
        """
        closing = (
            update(INCIDENTS)
            .where(INCIDENTS.c.name == name, INCIDENTS.c.key == key, INCIDENTS.c.is_open == 1)
            .values(is_open=None, closed=(at or datetime.now(UTC)).timestamp(), closing_run_id=run_id)
            .returning(INCIDENTS)
        )
        with self.translate_errors("written"):
            row = self.database.write(lambda connection: connection.execute(closing).one_or_none())
        return None if row is None else _incident(row)

    def _find_incidents(self, query: Select[Any]) -> list[Incident]:
        ordered = query.order_by(INCIDENTS.c.opened, INCIDENTS.c.incident_id)
        with self.translate_errors("read"):
            return self.database.read(lambda connection: [_incident(row) for row in connection.execute(ordered)])


def _incident(row: Row[Any]) -> Incident:
    return Incident(
        incident_id=row.incident_id,
        name=row.name,
        key=row.key,
        kind=row.kind,
        sentence=row.sentence,
        opened=datetime.fromtimestamp(row.opened, UTC),
        seen=datetime.fromtimestamp(row.seen, UTC),
        closed=None if row.closed is None else datetime.fromtimestamp(row.closed, UTC),
        times=row.times,
        run_id=row.run_id,
        closing_run_id=row.closing_run_id,
        details=row.details,
    )
