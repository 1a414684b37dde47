"""Write and read the record of a supervised process."""

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from filelock import FileLock, Timeout

from tasks.runtime.atomic_files import atomic_file, translate_write_errors


@dataclass(frozen=True, slots=True)
class ProcessFolder:
    """The folder of a process: its record, lock and log."""

    name: ClassVar[str]
    """Name of the files in the folder."""

    path: Path

    @property
    def record(self) -> Path:
        """The file with the id and the address of the process."""
        return self.path / f"{self.name}.json"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.path / f"{self.name}.lock"

    @property
    def log(self) -> Path:
        """The output of the process."""
        return self.path / f"{self.name}.log"

    def create(self) -> None:
        """Create the folder, accessible to the user only."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)

    def is_locked(self) -> bool:
        """Return whether a process holds the lock."""
        try:
            with FileLock(self.lock, timeout=0):
                return False
        except Timeout:
            return True


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process that was started and left running.

    Args:
        host: Machine of the process; several machines may share a folder.
    """

    pid: int
    host: str

    @property
    def is_local(self) -> bool:
        """Whether the process belongs to this machine."""
        return self.host == platform.node()

    def write(self, folder: ProcessFolder) -> None:
        """Write the record whole or not at all, readable by the user only.

        Raises:
            AssayError: The record cannot be written.
        """
        with translate_write_errors(f"the record {folder.record}"), atomic_file(folder.record) as temporary:
            temporary.unlink(missing_ok=True)  # one that a killed writer left keeps its mode
            temporary.touch(mode=0o600)
            temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: ProcessFolder) -> Self | None:
        """Read the record in a folder; None if there is none or it cannot be read."""
        try:
            content = json.loads(folder.record.read_text(encoding="utf-8"))
            # JSON has no tuples, but a record must equal the one that was written.
            fields: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
            }
            return cls(**fields)
        except (OSError, ValueError, TypeError, AttributeError):
            return None
