"""Send a run to an MLflow server.

The run is found again by a tag with its id, and an assessment by the run and the row in its metadata, so that sending
twice changes nothing. Metrics have the time of the run: MLflow keeps one value per time.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from metric_core.errors import MissingDependencyError
from metric_core.records import Status
from tasks.findings.finding import RunRecords
from tasks.history.run_entry import read_run_entry
from tasks.mlflow_results.feedback import make_feedback, mlflow_name, sources_of
from tasks.mlflow_results.mlflow_sink import INSTALL, PACKAGE, PURPOSE
from tasks.mlflow_results.run_content import FILES, RUN_ID, SLICES, RunContent, describe_run
from tasks.record.run_record import RunRecord
from tasks.reports.exports.scored_rows import ScoredRow, read_scored_rows
from tasks.reports.exports.sink import SinkError
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.threads import map_threads

ROW_ID = "rag_assay.row_id"
"""Metadata of an assessment: the row whose score it is."""

_AT_ONCE = 4
_LONGEST_REPLY = 300
_LINKED_AT_ONCE = 100
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}
"""Settings of MLflow's client for a server that is down, whose own keep a run waiting for minutes."""
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
_REFUSALS = frozenset({"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_ALREADY_EXISTS", "INVALID_STATE"})
"""Errors by which a server refuses a run; all others, such as those of a missing login, hold for every run."""


def send_run(uri: str, experiment: str, folder: Path) -> str:
    """Send a finished run, or what a server lacks of it, and return in words what it has.

    Args:
        uri: Tracking URI of the server.
        experiment: Name of the experiment; empty for that of the evaluation.

    Raises:
        SinkError: The server cannot be reached or refuses the run.
        MissingDependencyError: MLflow is not installed.
        RunFolderError: The folder does not hold a finished run.
    """
    finished, entry = FinishedRun(folder), read_run_entry(folder)
    content = describe_run(entry, RunRecords(finished.record, finished.summary, finished.folder))
    with _settings(_PATIENCE | _QUIET), _translated_errors():
        server = _Server(uri)
        name = experiment or entry.name
        run_id = server.put_run(name, finished.started, entry.cost.seconds or 0.0, content, finished.folder)
        words = server.put_assessments(run_id, finished.record, read_scored_rows(finished.folder))
        server.end_run(run_id, finished.started, entry.cost.seconds or 0.0, has_failed=bool(entry.failures))
    return f"run {run_id} of the experiment {name}, with {words}"


class _Server:
    """The clients of a server, which are imported here since few runs need them."""

    def __init__(self, uri: str) -> None:
        from mlflow import MlflowClient  # noqa: PLC0415 of an extra, and takes seconds
        from mlflow.tracing.client import TracingClient  # noqa: PLC0415

        self._runs: Any = MlflowClient(tracking_uri=uri)
        self._traces: Any = TracingClient(uri)

    def put_run(self, experiment: str, started: datetime, seconds: float, content: RunContent, folder: Path) -> str:
        """Write everything about a run but its assessments, and return its id at the server."""
        from mlflow.entities import Metric, Param, RunTag  # noqa: PLC0415

        run_id = self._find_run(experiment, started, content, folder.name)
        ended = _milliseconds(started, seconds)
        self._runs.log_batch(
            run_id,
            params=[Param(name, text) for name, text in content.parameters.items()],
            metrics=[Metric(name, value, ended, 0) for name, value in content.metrics.items()],
            tags=[RunTag(name, text) for name, text in content.tags.items()],
        )
        for path in (folder / name for name in FILES):
            if path.is_file():
                self._runs.log_artifact(run_id, str(path))
        if content.slices:
            self._runs.log_dict(run_id, {"slices": list(content.slices)}, SLICES)
        return run_id

    def _find_run(self, experiment: str, started: datetime, content: RunContent, name: str) -> str:
        """Return the id of the run at the server; one that was sent before is there, even if it is deleted.

        Raises:
            SinkError: It is deleted.
        """
        from mlflow.entities import ViewType  # noqa: PLC0415

        found = self._runs.get_experiment_by_name(experiment)
        number = self._runs.create_experiment(experiment) if found is None else found.experiment_id
        same = f"tags.`{RUN_ID}` = '{content.tags[RUN_ID]}'"
        known = self._runs.search_runs([number], same, run_view_type=ViewType.ALL, max_results=1)
        if known and known[0].info.lifecycle_stage == "deleted":
            raise SinkError(
                f"run {known[0].info.run_id} was deleted there; restore it to send it again", is_lasting=True
            )
        if known:
            return str(known[0].info.run_id)
        tags = {RUN_ID: content.tags[RUN_ID]}
        created = self._runs.create_run(number, start_time=_milliseconds(started), tags=tags, run_name=name)
        return str(created.info.run_id)

    def end_run(self, run_id: str, started: datetime, seconds: float, *, has_failed: bool) -> None:
        """End a run at the server."""
        status = "FAILED" if has_failed else "FINISHED"
        self._runs.set_terminated(run_id, status, end_time=_milliseconds(started, seconds))

    def put_assessments(self, run_id: str, record: RunRecord, rows: Iterable[ScoredRow]) -> str:
        """Write the scores of rows on their traces, and return in words how many traces have some."""
        by_trace: dict[str, list[ScoredRow]] = {}
        for row in rows:
            if (trace := _trace_id(row)) is not None:
                by_trace.setdefault(trace, []).append(row)
        put = partial(self._put_on_trace, run_id, sources_of(record))
        counts = dict(zip(by_trace, map_threads(put, by_trace.items(), _AT_ONCE), strict=True))
        known = [trace for trace, count in counts.items() if count is not None]
        for first in range(0, len(known), _LINKED_AT_ONCE):
            self._runs.link_traces_to_run(known[first : first + _LINKED_AT_ONCE], run_id)
        words = f"{sum(count or 0 for count in counts.values())} assessments on {_traces(len(known))}"
        missing = len(counts) - len(known)
        return words + (f"; {_traces(missing)} {'is' if missing == 1 else 'are'} not there" if missing else "")

    def _put_on_trace(
        self, run_id: str, sources: Mapping[str, tuple[str, str]], found: tuple[str, list[ScoredRow]]
    ) -> int | None:
        """Write the scores of rows on a trace; return how many it has, or None if the server lacks the trace."""
        from mlflow.exceptions import MlflowException  # noqa: PLC0415
        from mlflow.tracing.constant import AssessmentMetadataKey  # noqa: PLC0415

        trace, rows = found
        try:
            info = self._traces.get_trace_info(trace)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise
        of_run = AssessmentMetadataKey.SOURCE_RUN_ID
        there = {
            (each.name, each.metadata.get(ROW_ID))
            for each in info.assessments
            if each.metadata and each.metadata.get(of_run) == run_id
        }
        for row in rows:
            for cell in row.cells:
                name = mlflow_name(cell.metric)
                if cell.status is not Status.UNDEFINED and (name, row.row_id) not in there:
                    metadata = {of_run: run_id, ROW_ID: row.row_id}
                    self._traces.log_assessment(trace, make_feedback(name, cell, sources[cell.metric], metadata))
                    there.add((name, row.row_id))
        return len(there)


def _traces(count: int) -> str:
    return "1 trace" if count == 1 else f"{count} traces"


def _trace_id(row: ScoredRow) -> str | None:
    """Return the id of a row's trace as MLflow writes it: that of a trace of OpenTelemetry has a prefix."""
    trace = (row.trace_id or "").strip()
    is_bare = len(trace) == 32 and all(letter in "0123456789abcdef" for letter in trace.lower())
    return f"tr-{trace.lower()}" if is_bare else trace or None


def _milliseconds(start: datetime, seconds: float = 0.0) -> int:
    return int((start.timestamp() + seconds) * 1000)


@contextmanager
def _settings(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block, except for those that the user has set, and keep its log quiet."""
    added = {name: text for name, text in variables.items() if name not in os.environ}
    os.environ.update(added)
    retries = logging.getLogger("urllib3.connectionpool")
    level = retries.level
    retries.setLevel(logging.ERROR)  # it would print each try
    try:
        yield
    finally:
        retries.setLevel(level)
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        import mlflow.exceptions  # noqa: PLC0415 of an extra, and takes seconds
    except ModuleNotFoundError as error:
        raise MissingDependencyError(PACKAGE, PURPOSE, INSTALL) from error
    try:
        yield
    except mlflow.exceptions.MlflowException as error:
        is_down = isinstance(error.__context__, OSError)  # as those of its HTTP client are
        said = "it cannot be reached" if is_down else " ".join(str(error).split())[:_LONGEST_REPLY]
        raise SinkError(said, is_lasting=error.error_code in _REFUSALS) from error
