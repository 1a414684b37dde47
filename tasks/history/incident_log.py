"""Open and close incidents: the part of the history that says what is wrong now."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, select, update

from tasks.history.history_database import HistoryDatabase
from tasks.history.history_tables import INCIDENTS
from tasks.history.incident import OPENER, ChangedIncidents, Incident, IncidentChanges, IncidentFinding


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
        found = _is_open(name, finding.key)

        def work(connection: Connection) -> Incident:
            if not self._insert(connection, name, finding):
                self._note_again(connection, name, finding)
            return _incident(connection.execute(select(INCIDENTS).where(*found)).one())

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
        with self.translate_errors("written"):
            return self.database.write(lambda connection: _close(connection, name, key, at, run_id))

    def change_incidents(self, connection: Connection, name: str, changes: IncidentChanges) -> ChangedIncidents:
        """Make the changes of a run, in a transaction that others follow or precede as a whole.

        What the same flow run has changed already, before it was resumed, counts as changed.
        """
        opened = set()
        for each in changes.opened:
            if self._insert(connection, name, each):
                opened.add(each.key)
                continue
            query = select(INCIDENTS.c.details).where(*_is_open(name, each.key))
            details = connection.execute(query).scalar_one()
            if changes.flow_run and details.get(OPENER) == changes.flow_run:
                opened.add(each.key)
            details = {**each.details, OPENER: details.get(OPENER, "")}
            self._note_again(connection, name, replace(each, found=None, details=details))
        for each in changes.continuing:
            if not self._insert(connection, name, each):
                self._note_again(connection, name, replace(each, found=None))
        closed = {
            key
            for key in changes.closed
            if _close(connection, name, key, None, changes.flow_run) is not None
            or _is_closed_by(connection, name, key, changes.flow_run)
        }
        return ChangedIncidents(frozenset(opened), frozenset(closed))

    def _insert(self, connection: Connection, name: str, finding: IncidentFinding) -> bool:
        """Open an incident, and return whether it was not open."""
        now = datetime.now(UTC)
        opened = (finding.found or now).timestamp()
        values = {
            "incident_id": uuid.uuid4().hex,
            "name": name,
            "key": finding.key,
            "kind": finding.kind,
            "is_open": 1,
            "opened": opened,
            "seen": opened,
            "times": 1,
            "sentence": finding.sentence,
            "run_id": finding.run_id,
            "closing_run_id": "",
            "details": dict(finding.details),
        }
        same = ["name", "key", "is_open"]
        insertion = self.database.insert(INCIDENTS).values(values).on_conflict_do_nothing(index_elements=same)
        return connection.execute(insertion.returning(INCIDENTS.c.incident_id)).first() is not None

    def _note_again(self, connection: Connection, name: str, finding: IncidentFinding) -> None:
        changes = {
            "seen": (finding.found or datetime.now(UTC)).timestamp(),
            "sentence": finding.sentence,
            "details": dict(finding.details),
            "times": INCIDENTS.c.times + 1,
        }
        connection.execute(update(INCIDENTS).where(*_is_open(name, finding.key)).values(changes))

    def _find_incidents(self, query: Select[Any]) -> list[Incident]:
        ordered = query.order_by(INCIDENTS.c.opened, INCIDENTS.c.incident_id)
        with self.translate_errors("read"):
            return self.database.read(lambda connection: [_incident(row) for row in connection.execute(ordered)])


def _is_open(name: str, key: str) -> tuple[ColumnElement[bool], ...]:
    return (INCIDENTS.c.name == name, INCIDENTS.c.key == key, INCIDENTS.c.is_open == 1)


def _close(connection: Connection, name: str, key: str, at: datetime | None, run_id: str) -> Incident | None:
    closed = {"is_open": None, "closed": (at or datetime.now(UTC)).timestamp(), "closing_run_id": run_id}
    closing = update(INCIDENTS).where(*_is_open(name, key)).values(closed).returning(INCIDENTS)
    row = connection.execute(closing).one_or_none()
    return None if row is None else _incident(row)


def _is_closed_by(connection: Connection, name: str, key: str, run_id: str) -> bool:
    """Return whether a run was the last to close an incident."""
    query = select(INCIDENTS.c.closing_run_id).where(INCIDENTS.c.name == name, INCIDENTS.c.key == key)
    last = connection.execute(query.order_by(INCIDENTS.c.closed.desc()).limit(1)).scalar_one_or_none()
    return bool(run_id) and last == run_id


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
