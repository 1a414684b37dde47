"""Read and write `outcome.json`, the outcome of a monitored run, in its run folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from metric_core.errors import RunFolderError
from metric_core.parsing.regular_files import regular
from tasks.record.outcome import FORMAT, RunOutcome
from tasks.runs.run_folder import OUTCOME, RunFolder


def write_outcome(folder: Path, outcome: RunOutcome) -> None:
    """Write the outcome of a run into its run folder, in place of an earlier one.

    Args:
        folder: Run folder of a finished run.

    Raises:
        RunFolderError: The file cannot be written.
    """
    run = RunFolder(folder)
    with run.translate_write_errors():
        run.write_json(OUTCOME, outcome.model_dump(mode="json"))


def read_outcome(folder: Path) -> RunOutcome | None:
    """Return the outcome of a run; None if the run was not monitored.

    Raises:
        RunFolderError: The file is damaged, or has another format.
    """
    path = folder / OUTCOME
    try:
        content: Any = json.loads(regular(path).read_text(encoding="utf-8"))
        if isinstance(content, Mapping) and (found := content.get("format")) != FORMAT:
            raise RunFolderError(
                f"the outcome {path} has the format {found!r}, this rag-assay reads {FORMAT}. Read it with the release "
                "that wrote it, or remove it."
            )
        return RunOutcome.model_validate(content)
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise RunFolderError(f"the outcome {path} cannot be read: {place}: {first['msg']}. Remove it.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"the outcome {path} cannot be read: {error}. Remove it.") from error
