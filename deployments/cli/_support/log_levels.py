"""Set the levels of Prefect's log, before Prefect is imported."""

import logging
import os


def set_log_levels(verbose: bool) -> None:
    """Silence Prefect's log unless it is requested: the command prints what users need."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO" if verbose else "CRITICAL")
    if not verbose:  # otherwise Prefect logs several lines per event that a stopped server did not accept
        os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    for worker in () if verbose else ("APILogWorker", "EventsWorker"):
        logging.getLogger(worker).setLevel(logging.ERROR)
