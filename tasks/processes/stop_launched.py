"""Stop a judge: end its process group, remove its container and its record."""

import subprocess
from contextlib import suppress

from metric_core.errors import JudgeError
from tasks.processes.launch_record import JudgeFolder, JudgeRecord, read_judge_record
from tasks.processes.running_processes import end_group

STOP_SECONDS = 20.0
"""Seconds that a judge may take to finish its requests before it is killed."""

CLEANUP_SECONDS = 30.0


def stop_process(folder: JudgeFolder, record: JudgeRecord) -> bool:
    """Stop a judge and wait until it has ended. Another process that has received its id is left alone.

    Returns:
        Whether a process of the judge was running.

    Raises:
        JudgeError: The judge does not end.
    """
    was_running = record.is_running() or record.has_remnants()
    if was_running and not end_group(record.pid, STOP_SECONDS):
        raise JudgeError(f"the judge, process group {record.pid}, does not end; end it by hand")
    if record.cleanup:
        with suppress(OSError, subprocess.TimeoutExpired):  # without its engine there is no container either
            subprocess.run(record.cleanup, capture_output=True, check=False, timeout=CLEANUP_SECONDS)  # noqa: S603
    if read_judge_record(folder) == record:
        folder.record.unlink(missing_ok=True)
    return was_running
