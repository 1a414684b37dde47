"""Record a run in the history when it ends, and write the page of its evaluation again."""

from pathlib import Path

from flows.config.history_options import history_page_path
from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.run_entry import read_run
from tasks.runs.run_folder import MANIFEST, RunFolder


def record_in_history(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run that finished or failed; if its configuration names a page of the history, write that again.

    Args:
        history: Address of the history, as in the option; None for the default.
        folder: Run folder.

    Returns:
        Warnings if the run cannot be recorded or the page cannot be written: the results are in the run folder all the
        same.
    """
    return add_to_history(history, folder) or write_page_of(history, folder)


def add_to_history(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run that finished or failed, and return a warning if that fails.

    Args:
        history: Address of the history, as in the option; None for the default.
        folder: Run folder.
    """
    try:
        Catalogue(history).add(read_run(folder))
    except AssayError as error:
        return (f"the run was not recorded in the history; `assay history --rebuild {folder}` records it. {error}",)
    return ()


def write_page_of(history: str | None, folder: Path) -> tuple[str, ...]:
    """Write the page of the history that the configuration of a run names, and return a warning if that fails.

    Args:
        history: Address of the history, as in the option; None for the default.
        folder: Run folder.
    """
    try:
        page = (RunFolder(folder).read_json(MANIFEST).get("config") or {}).get("history_page")
        if page is not None:
            from tasks.reports.history.history_page import write_history_page  # noqa: PLC0415 few runs have a page

            name = read_run(folder).name
            write_history_page(Catalogue(history), name, history_page_path(page, name))
    except AssayError as error:
        return (f"the page of the history was not written. {error}",)
    return ()
