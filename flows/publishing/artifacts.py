"""Publish Prefect artifacts of a run: cost, summary, location of the report, and progress of long stages.

The results are in the run folder too, so an artifact that cannot be written is a warning and does not fail the run.
Artifacts hold names and numbers only, no text from the data, the configuration or a server, because everyone who can
see the Prefect server can read them.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from typing import Any, cast
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from flows.config.alert_options import AlertSettings
from flows.publishing.run_subject import RunSubject
from metric_core.stages import Stage
from tasks.documents.run.summary_rows import (
    SUMMARY_HEADINGS,
    USAGE_HEADINGS,
    summary_rows,
    usage_rows,
    verdict_line,
)
from tasks.prefect_support.lost_server import give_up_server
from tasks.runs.run_folder import RunFolder
from tasks.runtime.progress import listen
from tasks.runtime.threads import start_thread

COMPARISON_ARTIFACT = "assay-comparison"
"""Key of the artifact of a comparison."""

USAGE, SUMMARY, REPORT = "usage", "summary", "report"
PERIOD = 2.0
"""Seconds between two updates of a stage's progress; a stage that is done before the first one shows none."""

LONGEST_WAIT = 15.0
"""Seconds that the end of a run waits for a Prefect server that does not answer."""

_logger = logging.getLogger(__name__)


def publish(folder: RunFolder, subject: RunSubject, settings: AlertSettings) -> tuple[str, ...]:
    """Publish the artifacts of a finished run.

    Args:
        subject: Subject of the run, which names the artifacts.
        settings: Settings with the URL of run folders, if they are published at one.

    Returns:
        A warning for each artifact that could not be written.
    """
    summary, record = folder.read_summary(), folder.read_finished_record()
    usage = [dict(zip(USAGE_HEADINGS, row, strict=True)) for row in usage_rows(record)]
    metrics = [dict(zip(SUMMARY_HEADINGS, row, strict=True)) for row in summary_rows(summary)]
    places = f"- report: `{folder.report}`\n- run folder: `{folder.path}`"
    if settings.link is not None:
        places = f"[Report]({settings.link_to(folder.path, folder.report.name)})"
    writers: dict[str, tuple[Callable[..., object], Any, str]] = {
        USAGE: (create_table_artifact, usage, "Questions and cost of the stages"),
        SUMMARY: (create_table_artifact, metrics, _describe(summary.rows, verdict_line(record))),
        REPORT: (create_markdown_artifact, places, "Location of the results"),
    }
    return tuple(
        warning
        for kind, (create, content, text) in writers.items()
        for warning in write_artifact(kind, partial(create, content, subject.key(kind), subject.describe(text)))
    )


def write_artifact(kind: str, write: Callable[[], object]) -> tuple[str, ...]:
    """Write an artifact; return a warning if that fails, unless the server has gone, which the end of the run reports.

    Args:
        kind: Kind of the artifact, for the warning.
    """
    error = _attempt(kind, write)
    if error is None or give_up_server(error):
        return ()
    return (f"the artifact {kind!r} could not be written to Prefect: {type(error).__name__}",)


def _describe(rows: int, meaning: str | None) -> str:
    return f"Metrics over {rows} rows" + ("" if meaning is None else f"; {meaning}")


@contextmanager
def show_progress(subject: RunSubject) -> Iterator[None]:
    """Publish the progress of each long stage until the block ends.

    Args:
        subject: Subject of the run, which names the artifacts.
    """
    board, ended = _Board(subject), Event()
    # The context says to which run the artifacts belong. Stages report from threads that must not wait for Prefect.
    with listen(board.note):
        thread = start_thread("progress-artifacts", copy_context().run, board.publish_until, ended)
        try:
            yield
        finally:
            ended.set()
            thread.join(LONGEST_WAIT)


@dataclass(slots=True)
class _Bar:
    """The progress of a stage, and its artifact, if it has one."""

    done: int = 0
    total: int = 0
    artifact: UUID | None = None
    shown: float | None = None

    @property
    def percent(self) -> float:
        return min(100.0, 100 * self.done / self.total) if self.total else 0.0


class _Board:
    """The progress of all stages."""

    def __init__(self, subject: RunSubject) -> None:
        self._subject = subject
        self._lock = Lock()
        self._bars: dict[Stage, _Bar] = {}

    def note(self, stage: Stage, done: int, more: int | None) -> None:
        """Record a progress report of a stage."""
        with self._lock:
            bar = self._bars.setdefault(stage, _Bar())
            bar.done += done
            bar.total += more or 0

    def publish_until(self, ended: Event) -> None:
        """Publish changes periodically until the event is set, and once more then unless the last attempt failed."""
        error = None
        while not ended.wait(PERIOD):
            error = _attempt("progress", self._publish)
        if error is None:
            _attempt("progress", lambda: self._publish(is_last=True))

    def _publish(self, is_last: bool = False) -> None:
        with self._lock:
            bars = dict(self._bars)
        for stage, bar in bars.items():
            percent = bar.percent
            if bar.artifact is None and percent < 100 and not is_last:
                key = self._subject.key(f"progress-{stage}")
                artifact = create_progress_artifact(percent, key, f"Progress of the stage {stage}")
                bar.artifact = cast("UUID", artifact)
            elif bar.artifact is not None and percent != bar.shown:
                update_progress_artifact(bar.artifact, percent)
            bar.shown = percent


def _attempt(key: str, write: Callable[[], object]) -> Exception | None:
    """Write an artifact; return the error if that fails."""
    try:
        write()
    except Exception as error:  # whatever the error, the results are in the run folder
        _logger.debug("the artifact %s cannot be written", key, exc_info=True)
        return error
    return None
