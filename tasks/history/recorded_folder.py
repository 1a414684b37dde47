"""Open the folders of recorded runs."""

from metric_core.errors import RunFolderError
from tasks.history.recorded_run import RecordedRun
from tasks.runs.finished_run import FinishedRun


def open_run(recorded: RecordedRun) -> FinishedRun:
    """Return a recorded run that finished.

    Raises:
        RunFolderError: Its folder cannot be read, or contains another run.
    """
    run = FinishedRun(recorded.folder)
    if run.run_id != recorded.run_id:
        raise RunFolderError(f"its folder {recorded.folder} contains another run. Give each run a separate folder.")
    return run
