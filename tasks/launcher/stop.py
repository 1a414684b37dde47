"""Ends a judge that a record names: its process group, its container, its record."""

import subprocess
from contextlib import suppress

from metric_core.errors import JudgeError
from tasks.launcher.launch_record import JudgeFolder, JudgeRecord, read_judge_record
from tasks.launcher.processes import end_group

STOP_SECONDS = 20.0
"""How long a judge may take to finish its requests before it is killed."""

CLEANUP_SECONDS = 30.0


def stop_process(folder: JudgeFolder, record: JudgeRecord) -> bool:
    """Ends a judge and waits until it has; a process that has got its number since is left alone.

    Returns:
        Whether there was something to end.

    Raises:
        JudgeError: it does not end.
    """
    is_there = record.is_running() or record.has_remnants()
    if is_there and not end_group(record.pid, STOP_SECONDS):
        raise JudgeError(f"the judge, process group {record.pid}, does not end; end it by hand")
    if record.cleanup:
        with suppress(OSError, subprocess.TimeoutExpired):  # without its engine there is no container either
            subprocess.run(record.cleanup, capture_output=True, check=False, timeout=CLEANUP_SECONDS)  # noqa: S603
    if read_judge_record(folder) == record:
        folder.record.unlink(missing_ok=True)
    return is_there
