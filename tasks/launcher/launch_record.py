"""What a launched judge leaves on disk, and how to tell whether the judge that a record names is still there."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from metric_core.errors import JudgeError
from tasks.launcher.processes import find_process, group_members


@dataclass(frozen=True, slots=True)
class JudgeFolder:
    """The folder of a judge's record, lock and log."""

    path: Path

    @classmethod
    def of(cls, home: Path) -> "JudgeFolder":
        """The folder in a home."""
        return cls(home.expanduser().absolute() / "judge")

    @property
    def record(self) -> Path:
        """Says which process it is and where it listens."""
        return self.path / "judge.json"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops a judge."""
        return self.path / "judge.lock"

    @property
    def log(self) -> Path:
        """What the judge prints."""
        return self.path / "judge.log"


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """A judge that was launched.

    Args:
        pid: its process, which leads a group of the same number.
        started: when the process started, in the system's words.
        host: the machine; a folder may be shared between machines.
        url: its `/v1` URL.
        model: the model's name at the server.
        settings: the launch settings as they may be shown.
        digest: the digest of the launch settings.
        launched_at: seconds since the epoch.
        owner: the process whose run it ends with; None: it is kept.
        cleanup: the command that ends its container, if it has one.
    """

    pid: int
    started: str
    host: str
    url: str
    model: str
    settings: Mapping[str, Any]
    digest: str
    launched_at: float
    owner: int | None = None
    cleanup: tuple[str, ...] = ()

    def is_running(self) -> bool:
        """Whether its process is running."""
        process = find_process(self.pid)
        return process is not None and process.started == self.started

    def has_remnants(self) -> bool:
        """Whether its process has ended, but others of its group have not; their number is not given away meanwhile.

        After a restart of the machine, the group of that number is another one, perhaps of a service without a leader.
        """
        if find_process(self.pid) is not None or not self.started:
            return False
        return any(process.may_follow(self.started) for process in group_members(self.pid))

    def write(self, folder: JudgeFolder) -> None:
        """Puts the record in its place in one step."""
        temporary = folder.record.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        temporary.replace(folder.record)


def read_judge_record(folder: JudgeFolder) -> JudgeRecord | None:
    """The record in a folder; None if there is none or it can not be read.

    Raises:
        JudgeError: the judge runs on another machine.
    """
    try:
        content = json.loads(folder.record.read_text(encoding="utf-8"))
        record = JudgeRecord(**{**content, "cleanup": tuple(content["cleanup"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if record.host != platform.node():
        raise JudgeError(
            f"the judge in {folder.path} was launched on another machine, {record.host}. Set ASSAY_HOME to a folder of "
            f"this machine, or, if that machine has none running, delete {folder.record}."
        )
    return record
