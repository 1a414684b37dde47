"""Set how this process and those that it starts log."""

import os

JSON_LOGS = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json",
    "PREFECT_LOGGING_HANDLERS_DEBUG_FORMATTER": "json",
    "PREFECT_LOGGING_COLORS": "false",
}
"""The variables with which Prefect, which also handles the logs of other libraries, writes a JSON object per line."""


HANDLERS = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS": "rag_assay._log_handlers.ConsoleHandler",
    "PREFECT_LOGGING_HANDLERS_DEBUG_CLASS": "rag_assay._log_handlers.DebugHandler",
}
"""The variables with which Prefect logs an outage of its server, and an error that the user can fix, in one line."""

QUIET_HANDLERS = {"PREFECT_LOGGING_HANDLERS_CONSOLE_CLASS": "rag_assay._log_handlers.ConsoleHandlerOfService"}
"""The variables with which Prefect does not log errors that the user can fix: another process prints how runs end."""


def log_variables(log_format: str) -> dict[str, str]:
    """Return the environment variables of a process that logs in a format, and an outage of Prefect in one line.

    Args:
        log_format: `text` or `json`.

    >>> log_variables("text") == HANDLERS
    True
    """
    return HANDLERS | (JSON_LOGS if log_format == "json" else {})


def set_log_format(log_format: str) -> None:
    """Set the format of the logs of this process and those that it starts; call this before Prefect is imported.

    Args:
        log_format: `text` or `json`. Variables that the user has set keep their values.
    """
    for name, value in log_variables(log_format).items():
        os.environ.setdefault(name, value)
