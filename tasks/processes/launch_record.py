"""The record of a launched judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metric_core.errors import JudgeError
from tasks.processes.process_record import ProcessFolder, ProcessRecord
from tasks.processes.running_processes import find_process, group_members


class JudgeFolder(ProcessFolder):
    """The folder of a judge. Whoever starts or stops a judge holds its lock."""

    name = "judge"

    @classmethod
    def from_home(cls, home: Path, role: str = "") -> "JudgeFolder":
        """Return the folder in a home.

        Args:
            home: Folder of caches and stores.
            role: Group of questions that a run launches it for; empty for the judge of the home.
        """
        return cls(home.expanduser().absolute() / (f"judge-{role}" if role else "judge"))


@dataclass(frozen=True, slots=True)
class JudgeRecord(ProcessRecord):
    """The record of a launched judge, whose process leads a group with the same id.

    Args:
        pid: Id of the process.
        host: Machine of the process.
        started: Start time of the process, as the system writes it.
        url: `/v1` URL of the judge.
        settings: Launch settings without secrets.
        launched_at: Time of the launch, in seconds since the epoch.
        owner: Process whose run the judge belongs to; None if it runs until someone stops it.
        cleanup: Command that removes its container; empty without one.
    """

    started: str
    url: str
    model: str
    settings: Mapping[str, Any]
    digest: str
    launched_at: float
    owner: int | None = None
    cleanup: tuple[str, ...] = ()

    def is_running(self) -> bool:
        """Return whether the process is running."""
        process = find_process(self.pid)
        return process is not None and process.started == self.started

    def has_remnants(self) -> bool:
        """Return whether the process has ended, but others of its group have not.

        The system does not reuse the id while the group exists. After a reboot, the id may belong to another group, for
        example that of a service without a leader.
        """
        if find_process(self.pid) is not None or not self.started:
            return False
        return any(process.may_follow(self.started) for process in group_members(self.pid))


def read_judge_record(folder: JudgeFolder) -> JudgeRecord | None:
    """Read the record in a folder; None if there is none or it cannot be read.

    Raises:
        JudgeError: The judge runs on another machine.
    """
    record = JudgeRecord.read(folder)
    if record is not None and not record.is_local:
        raise JudgeError(
            f"the judge in {folder.path} was launched on another machine, {record.host}. Set ASSAY_HOME to a folder of "
            f"this machine, or, if no judge is running on that machine, delete {folder.record}."
        )
    return record
