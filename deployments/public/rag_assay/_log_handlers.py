"""The handlers that Prefect loads by name in the processes that rag-assay starts or configures."""

from rag_assay._packages import open_packages

open_packages()

from tasks.prefect_support.console_log import (  # noqa: E402
    ConsoleHandler,
    ConsoleHandlerOfService,
    DebugHandler,
    silence_prints,
)

__all__ = ["ConsoleHandler", "ConsoleHandlerOfService", "DebugHandler"]

silence_prints()
