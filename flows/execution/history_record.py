"""Record a run in the history when it ends, and write the page of its evaluation again."""

from collections.abc import Iterable
from pathlib import Path

from flows.config.history_options import history_page_path
from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.history.run_entry import read_run
from tasks.runs.run_folder import MANIFEST, RunFolder


class NotRecordedError(AssayError):
    """A run could not be recorded in the history."""


def record_in_history(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run that finished or failed; if its configuration names a page of the history, write that again.

    Args:
        history: Address of the history, as in the option; None for the default.
        folder: Run folder.

    Returns:
        Warnings if the run cannot be recorded or the page cannot be written: the results are in the run folder all the
        same.
    """
    try:
        return record_run_of(history, folder)
    except NotRecordedError as error:
        return (str(error),)


def record_run_of(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run as `record_in_history` does, but raise an error if it cannot be recorded.

    Args:
        history: Address of the history, as in the option; None for the default.
        folder: Run folder.

    Returns:
        Warnings if the page cannot be written.

    Raises:
        NotRecordedError: The run cannot be recorded.
    """
    try:
        page = (RunFolder(folder).read_json(MANIFEST).get("config") or {}).get("history_page")
        return _record(history, [read_run(folder)], page)
    except AssayError as error:
        advice = f"`assay history --rebuild {folder}` records it"
        raise NotRecordedError(f"the run was not recorded in the history; {advice}. {error}") from error


def record_without_results(
    history: str | None, runs: Iterable[RecordedRun], page: str | None = None
) -> tuple[str, ...]:
    """Record runs that were missed, or failed before they had a run folder, and write the page of the history again.

    Args:
        history: Address of the history, as in the option; None for the default.
        runs: The runs, all of one evaluation.
        page: The option `history_page`.

    Returns:
        Warnings if the runs cannot be recorded or the page cannot be written.
    """
    try:
        return _record(history, runs, page)
    except AssayError as error:
        return (f"a run without results was not recorded in the history. {error}",)


def _record(history: str | None, runs: Iterable[RecordedRun], page: str | None) -> tuple[str, ...]:
    catalogue, names = Catalogue(history), set[str]()
    for run in runs:
        catalogue.add(run)
        names.add(run.name)
    try:
        for name in names if page is not None else ():
            from tasks.reports.history.history_page import write_history_page  # noqa: PLC0415 few runs have a page

            write_history_page(catalogue, name, history_page_path(str(page), name))
    except AssayError as error:
        return (f"the page of the history was not written. {error}",)
    return ()
