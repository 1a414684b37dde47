"""Read and write what alerts need of the history: incidents, messages, silences and acknowledgements."""

from tasks.history.incident_log import IncidentLog
from tasks.history.message_log import MessageLog
from tasks.history.operator_log import OperatorLog


class AlertLog(MessageLog, OperatorLog, IncidentLog):
    """Incidents, messages, silences and acknowledgements in one database.

    Args:
        url: Address of the database, as in the option `history`; None means a file in ASSAY_HOME.
    """
