"""Keep the open incidents of an evaluation in a file in ASSAY_HOME, beside the history."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tasks.prefect_support.run_log import run_logger
from tasks.record.outcome import OutcomeIncident
from tasks.runs.baselines import folder_of_evaluation
from tasks.runtime.atomic_files import atomic_write
from tasks.runtime.home import assay_home

_INCIDENTS = TypeAdapter(list[OutcomeIncident])


class KeptIncidents:
    """The file of the open incidents of an evaluation.

    Args:
        history: Address of the history, as the option `history`: two histories may have evaluations of one name.
        name: Name of the evaluation.
    """

    def __init__(self, history: str | None, name: str) -> None:
        digest = hashlib.sha256((history or "").encode()).hexdigest()[:8]
        self._path: Path = assay_home() / "incidents" / f"{folder_of_evaluation(name)}-{digest}.json"

    def read(self) -> tuple[OutcomeIncident, ...]:
        """Return the incidents; none if there is no file, or if it cannot be read."""
        try:
            return tuple(_INCIDENTS.validate_json(self._path.read_bytes()))
        except FileNotFoundError:
            return ()
        except (OSError, ValidationError) as error:
            run_logger().warning(f"the file of open incidents {self._path} cannot be read: {type(error).__name__}")
            return ()

    def write(self, incidents: Sequence[OutcomeIncident]) -> None:
        """Write the incidents; a file without any is removed."""
        try:
            if incidents:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(self._path, _INCIDENTS.dump_json([*incidents], indent=1).decode())
            else:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            run_logger().warning(f"the file of open incidents {self._path} cannot be written: {error.strerror}")
