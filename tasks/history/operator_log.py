"""Record silences and acknowledgements: who takes care of an incident, and when no messages are wanted."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, delete, or_, select, update

from tasks.history.history_database import HistoryDatabase
from tasks.history.history_tables import ACKNOWLEDGEMENTS, RUNS, SILENCES
from tasks.history.recorded_run import COMPLETED


@dataclass(frozen=True, slots=True)
class Silence:
    """A period in which no message about an evaluation is sent.

    Args:
        reason: Reason; may be empty.
    """

    begins: datetime
    ends: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The word of a person that an incident is taken care of.

    Args:
        person: Name of the person; may be empty.
    """

    time: datetime
    person: str = ""


class OperatorLog(HistoryDatabase):
    """Silences and acknowledgements in the history. Several threads, processes and machines may use it.

    Args:
        url: Address of the database, as in the option `history`; None means a file in ASSAY_HOME.
    """

    def silence(self, name: str, silence: Silence) -> None:
        """Send no messages about an evaluation for a while.

        Raises:
            ConfigError: The database cannot be used.
        """
        row = {
            "silence_id": uuid.uuid4().hex,
            "name": name,
            "begins": silence.begins.timestamp(),
            "ends": silence.ends.timestamp(),
            "reason": silence.reason,
        }
        with self.translate_errors("written"):
            self.database.write(lambda connection: connection.execute(SILENCES.insert().values(row)))

    def silences(self, name: str, at: datetime) -> list[Silence]:
        """Return the silences of an evaluation that are not over, by their beginning.

        Args:
            at: Present time.

        Raises:
            ConfigError: The database cannot be used.
        """
        query = select(SILENCES).where(SILENCES.c.name == name, SILENCES.c.ends > at.timestamp())
        with self.translate_errors("read"):
            rows = self.database.read(lambda connection: connection.execute(query.order_by(SILENCES.c.begins)).all())
        return [
            Silence(datetime.fromtimestamp(row.begins, UTC), datetime.fromtimestamp(row.ends, UTC), row.reason)
            for row in rows
        ]

    def latest_starts(self, name: str, last: int) -> list[datetime]:
        """Return when the latest runs of an evaluation started that have been reported, the latest first.

        Raises:
            ConfigError: The database cannot be used.
        """
        is_reported = or_(RUNS.c.outcome.is_not(None), RUNS.c.status != COMPLETED)
        query = select(RUNS.c.created).where(RUNS.c.name == name, is_reported)
        query = query.order_by(RUNS.c.created.desc()).limit(last)
        with self.translate_errors("read"):
            found = self.database.read(lambda connection: connection.execute(query).scalars().all())
        return [datetime.fromtimestamp(each, UTC) for each in found]

    def end_silences(self, name: str, at: datetime) -> int:
        """End the silences of an evaluation, and return how many there were that are not over.

        Args:
            at: Present time.

        Raises:
            ConfigError: The database cannot be used.
        """
        own, now = SILENCES.c.name == name, at.timestamp()

        def work(connection: Connection) -> int:
            removed = connection.execute(delete(SILENCES).where(own, SILENCES.c.begins >= now)).rowcount
            return (
                removed
                + connection.execute(update(SILENCES).where(own, SILENCES.c.ends > now).values(ends=now)).rowcount
            )

        with self.translate_errors("written"):
            return self.database.write(work)

    def acknowledge(self, incident_ids: Collection[str], acknowledgement: Acknowledgement) -> None:
        """Note who takes care of incidents; an earlier acknowledgement stays.

        Raises:
            ConfigError: The database cannot be used.
        """
        said = {"time": acknowledgement.time.timestamp(), "person": acknowledgement.person}
        insertion = self.database.insert(ACKNOWLEDGEMENTS).on_conflict_do_nothing()

        def work(connection: Connection) -> None:
            for incident_id in incident_ids:
                connection.execute(insertion.values(incident_id=incident_id, **said))

        with self.translate_errors("written"):
            self.database.write(work)

    def acknowledgements(self, incident_ids: Collection[str]) -> dict[str, Acknowledgement]:
        """Return the acknowledgements of those incidents that have one, by the ids of the incidents.

        Raises:
            ConfigError: The database cannot be used.
        """
        query = select(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id.in_(incident_ids))
        with self.translate_errors("read"):
            rows = self.database.read(lambda connection: connection.execute(query).all())
        return {row.incident_id: Acknowledgement(datetime.fromtimestamp(row.time, UTC), row.person) for row in rows}
