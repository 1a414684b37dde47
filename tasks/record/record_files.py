"""Parse the files of the record of a run, which may be damaged, or written by another program."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from metric_core.errors import RunFolderError
from metric_core.parsing.regular_files import regular
from tasks.record.part import Part
from tasks.record.run_record import FORMAT, DeploymentRecord, RunRecord
from tasks.record.run_summary import RunSummary

AGAIN = "Evaluate the source again with `assay run`."
_Content = TypeVar("_Content", bound=Part)


class RunHeader(BaseModel, frozen=True, extra="ignore"):
    """The identity of a run, from a record of any format."""

    format: int
    run_id: str
    created: datetime
    source: str | None = None
    deployment: DeploymentRecord | None = None


def read_header(file: Path) -> RunHeader | None:
    """Return the header of a run.json; None if it is damaged, or is not that of a run."""
    try:
        return RunHeader.model_validate_json(regular(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def parse_record(content: Mapping[str, Any], path: Path) -> RunRecord:
    """Return the record of a run in any state.

    Args:
        content: Content of run.json.
        path: Path of the file, for messages.

    Raises:
        RunFolderError: The file has another format or is damaged; the message names the entry.
    """
    if (found := content.get("format")) != FORMAT:
        raise RunFolderError(
            f"the run in {path.parent} has the format {found!r}, this rag-assay reads {FORMAT}. "
            "Evaluate its source again with `assay run`."
        )
    return _parse(RunRecord, content, path)


def parse_finished(content: Mapping[str, Any], path: Path) -> RunRecord:
    """Return the record of a finished run; see `parse_record`.

    Raises:
        RunFolderError: The run did not finish, or its file has another format or is damaged.
    """
    status = content.get("status")
    if content.get("format") == FORMAT and status != "completed":
        raise RunFolderError(
            f"the run in {path.parent} is not finished (its status is {status!r}). "
            "Start it again with `assay run`; finished stage tables are reused."
        )
    return parse_record(content, path)


def parse_summary(content: Mapping[str, Any], path: Path) -> RunSummary:
    """Return the summary of a run.

    Args:
        content: Content of summary.json.
        path: Path of the file, for messages.

    Raises:
        RunFolderError: The file is damaged; the message names the entry.
    """
    return _parse(RunSummary, content, path)


def _parse(kind: type[_Content], content: Mapping[str, Any], path: Path) -> _Content:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        got = "" if first["type"] == "missing" else f", got {first['input']!r}"
        raise RunFolderError(f"{path} cannot be read: {place}: {first['msg']}{got[:300]}. {AGAIN}") from error
