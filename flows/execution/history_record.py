"""Record a run in the history when it ends."""

from pathlib import Path

from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue


def record_in_history(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run that finished or failed.

    Args:
        history: Address of the history, as in the option; None for the default.
        folder: Run folder.

    Returns:
        A warning if the run cannot be recorded: its results are in the run folder all the same.
    """
    try:
        Catalogue(history).record(folder)
    except AssayError as error:
        return (f"the run was not recorded in the history; `assay history --rebuild {folder}` records it. {error}",)
    return ()
