"""Log to the current flow run, or else to the log of Prefect."""

from logging import Logger, LoggerAdapter
from typing import Any

from prefect.context import FlowRunContext
from prefect.logging import get_logger, get_run_logger


def run_logger() -> "Logger | LoggerAdapter[Any]":
    """Return the logger of the current flow run, or one of Prefect's without a run."""
    return get_logger("rag_assay") if FlowRunContext.get() is None else get_run_logger()
