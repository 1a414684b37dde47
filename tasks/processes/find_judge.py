"""Find and stop the judge of a home, from any process."""

import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tasks.processes.launch_record import JudgeFolder, JudgeRecord, read_judge_record
from tasks.processes.start import is_healthy
from tasks.processes.stop_launched import stop_process


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """The state of the judge of a home.

    Args:
        record: Record of the judge; None if no judge is running.
        healthy: True if the judge answers.
        uptime: Seconds since the judge was launched.
    """

    folder: JudgeFolder
    record: JudgeRecord | None = None
    healthy: bool = False
    uptime: float = 0.0

    def __str__(self) -> str:
        if self.record is None:
            return f"no judge is running (folder {self.folder.path})"
        state = "ready" if self.healthy else "starting, or not answering"
        owner = "" if self.record.owner is None else f", owned by process {self.record.owner}"
        return (
            f"{self.record.url} serves {self.record.model} ({state}, process {self.record.pid}{owner}, launched "
            f"{self.uptime:.0f} s ago, log {self.folder.log})"
        )


def judge_status(home: Path) -> JudgeStatus:
    """Return the state of the judge of a home.

    Args:
        home: Folder of caches and stores.

    Raises:
        JudgeError: The judge runs on another machine.
    """
    folder = JudgeFolder.from_home(home)
    record = read_judge_record(folder)
    if record is None or not record.is_running():
        return JudgeStatus(folder)
    return JudgeStatus(folder, record, is_healthy(record), max(0.0, time.time() - record.launched_at))


def stop_judge(home: Path) -> bool:
    """Stop the judge of a home and wait until it has ended. A judge that does not end in time is killed.

    Args:
        home: Folder of caches and stores.

    Returns:
        Whether a judge was running.

    Raises:
        JudgeError: The judge runs on another machine, or does not end.
    """
    folder = JudgeFolder.from_home(home)
    if not folder.record.exists():
        return False
    with FileLock(folder.lock):
        record = read_judge_record(folder)
        return record is not None and stop_process(folder, record)
