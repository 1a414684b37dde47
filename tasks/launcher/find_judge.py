"""Finds and stops the judge of a home, from any process."""

import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tasks.launcher.launch_record import JudgeFolder, JudgeRecord, read_judge_record
from tasks.launcher.start import is_healthy
from tasks.launcher.stop import stop_process


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """What is known of the judge of a home.

    Args:
        folder: where its record and log lie.
        record: the judge; None if no process of it is running.
        healthy: whether it can serve.
        uptime: seconds since it was launched.
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
    """What is known of the judge of a home.

    Raises:
        JudgeError: it runs on another machine.
    """
    folder = JudgeFolder.of(home)
    record = read_judge_record(folder)
    if record is None or not record.is_running():
        return JudgeStatus(folder)
    return JudgeStatus(folder, record, is_healthy(record), max(0.0, time.time() - record.launched_at))


def stop_judge(home: Path) -> bool:
    """Stops the judge of a home, and waits until it has ended: asked to, and killed if it does not.

    Returns:
        Whether there was one.

    Raises:
        JudgeError: it runs on another machine, or does not end.
    """
    folder = JudgeFolder.of(home)
    if not folder.record.exists():
        return False
    with FileLock(folder.lock):
        record = read_judge_record(folder)
        return record is not None and stop_process(folder, record)
