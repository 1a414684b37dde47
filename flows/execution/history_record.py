"""Record a run in the history when it ends, and write the page of its evaluation again."""

from pathlib import Path

from flows.config.history_options import history_page_path
from flows.config.run_config import RunConfig
from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
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
    try:
        catalogue, run = Catalogue(history), read_run(folder)
        catalogue.add(run)
    except AssayError as error:
        return (f"the run was not recorded in the history; `assay history --rebuild {folder}` records it. {error}",)
    page = (RunFolder(folder).read_json(MANIFEST).get("config") or {}).get("history_page")
    return _write_page(catalogue, run.name, page)


def record_without_results(config: RunConfig, run: RecordedRun) -> tuple[str, ...]:
    """Record a monitored run without a run folder; if its configuration names a page of the history, write that again.

    Args:
        config: Configuration of the run.
        run: The run, made by `RecordedRun.without_results`.

    Returns:
        Warnings if the run cannot be recorded or the page cannot be written.
    """
    try:
        catalogue = Catalogue(config.history)
        catalogue.add(run)
    except AssayError as error:
        return (f"the run was not recorded in the history. {error}",)
    return _write_page(catalogue, run.name, config.history_page)


def _write_page(catalogue: Catalogue, name: str, page: str | None) -> tuple[str, ...]:
    if page is None:
        return ()
    from tasks.reports.history.history_page import write_history_page  # noqa: PLC0415 few runs have a page

    try:
        write_history_page(catalogue, name, history_page_path(page, name))
    except AssayError as error:
        return (f"the page of the history was not written. {error}",)
    return ()
