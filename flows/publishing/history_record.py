"""Record a run in the history when it ends, and write the page of its evaluation again."""

from pathlib import Path

from flows.config.history_options import HistoryOptions, history_page_path
from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.runs.run_folder import RunFolder


class NotRecordedError(AssayError):
    """A run could not be recorded in the history."""


def record_in_history(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run that finished or failed; if its configuration names a page of the history, write that again.

    Args:
        history: Address of the history, as in the option; None for the default.

    Returns:
        Warnings if the run cannot be recorded or the page cannot be written: the results are in the run folder all the
        same.
    """
    try:
        return record_surely(history, folder)
    except NotRecordedError as error:
        return (str(error),)


def record_surely(history: str | None, folder: Path) -> tuple[str, ...]:
    """Record a run as `record_in_history` does, but raise an error if it cannot be recorded.

    Args:
        history: Address of the history, as in the option; None for the default.

    Returns:
        Warnings if the page cannot be written.

    Raises:
        NotRecordedError: The run cannot be recorded.
    """
    try:
        catalogue = Catalogue(history)
        run = catalogue.record(folder)
        page = RunFolder(folder).read_record().config.history_page
    except AssayError as error:
        advice = f"`assay history --rebuild {folder}` records it"
        raise NotRecordedError(f"the run was not recorded in the history; {advice}. {error}") from error
    return _write_page(catalogue, run.name, page)


def record_without_results(options: HistoryOptions, *runs: RecordedRun) -> tuple[str, ...]:
    """Record monitored runs without run folders; if the options name a page of the history, write that again.

    Args:
        *runs: The runs, made by `RecordedRun.without_results`; may be none.

    Returns:
        Warnings if a run cannot be recorded or the page cannot be written.
    """
    if not runs:
        return ()
    try:
        catalogue = Catalogue(options.history)
        for run in runs:
            catalogue.add(run)
    except AssayError as error:
        return (f"the run was not recorded in the history. {error}",)
    return _write_page(catalogue, runs[-1].name, options.history_page)


def _write_page(catalogue: Catalogue, name: str, page: str | None) -> tuple[str, ...]:
    if page is None:
        return ()
    from tasks.reports.history.history_page import write_history_page  # noqa: PLC0415 few runs have a page

    try:
        write_history_page(catalogue, name, history_page_path(page, name))
    except AssayError as error:
        return (f"the page of the history was not written. {error}",)
    return ()
