"""Read and write what alerts need of the history: incidents, messages, silences and acknowledgements."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection

from tasks.history.incident import ChangedIncidents, IncidentChanges
from tasks.history.incident_log import IncidentLog
from tasks.history.message_log import MessageLog, State
from tasks.history.operator_log import OperatorLog

Messages: TypeAlias = Collection[tuple[str, str, Mapping[str, Any]]]
"""Name of the recipient, identity and content of alerts."""


class AlertLog(MessageLog, OperatorLog, IncidentLog):
    """Incidents, messages, silences and acknowledgements in one database.

    Args:
        url: Address of the database, as in the option `history`; None means a file in ASSAY_HOME.
    """

    def report(
        self,
        name: str,
        changes: IncidentChanges,
        word: Callable[[ChangedIncidents], Messages],
        state: State,
        at: datetime,
    ) -> set[tuple[str, str]]:
        """Change incidents and write the messages about these changes, all or nothing.

        Of two runs that find the same at the same time, one opens the incident, and has messages about it.

        Args:
            word: Function of what the run has changed that returns the messages.
            at: Present time.

        Returns:
            Recipient and identity of the messages that are new.

        Raises:
            ConfigError: The database cannot be used.
        """

        def work(connection: Connection) -> set[tuple[str, str]]:
            changed = self.change_incidents(connection, name, changes)
            return self.put_messages(connection, name, word(changed), state, at)

        with self.translate_errors("written"):
            return self.database.write(work)
