"""The handlers that Prefect loads by name in the processes that rag-assay starts or configures."""

from rag_assay._packages import open_packages

open_packages()

from tasks.prefect_support.outage_log import ConsoleHandler, DebugHandler, silence_prints  # noqa: E402

__all__ = ["ConsoleHandler", "DebugHandler"]

silence_prints()
