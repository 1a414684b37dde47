"""Find what is wrong with the data of a run, whatever the scores are: no rows, or the same answers for long."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from flows.config.run_config import RunConfig
from tasks.history.recorded_run import ANSWERS, RecordedRun
from tasks.history.run_entry import read_run
from tasks.runs.outcome import OutcomeIncident

EMPTY, UNCHANGED = "source: empty", "source: unchanged"
"""Keys of the incidents."""

_LEAST_RUNS = 3
"""Runs with the same answers, tonight's included, that can be called unchanged: a weekly run is not, after one week."""


def find_source_incidents(
    config: RunConfig, folder: Path, runs: Sequence[RecordedRun], now: datetime
) -> list[OutcomeIncident]:
    """Return what is wrong with the data of a run.

    Args:
        config: Configuration of the run; `deploy.stale_days` says how long answers may stay the same.
        folder: Run folder.
        runs: Runs of the evaluation in the history, oldest first.
        now: Time of the run.

    Raises:
        RunFolderError: The run folder is damaged.
    """
    return list(_find(read_run(folder), runs, now, config.deploy.stale_days))


def unchanged_since(run: RecordedRun, earlier: Sequence[RecordedRun]) -> tuple[datetime, int]:
    """Return the start of the first of the runs in a row that had the same answers, and the number of these runs.

    Args:
        run: Latest run.
        earlier: Runs before it, oldest first; those that failed are passed over.
    """
    since, count = run.created, 1
    for each in reversed(earlier):
        if each.run_id == run.run_id or ANSWERS not in each.versions:
            continue
        if each.versions[ANSWERS] != run.versions.get(ANSWERS):
            break
        since, count = each.created, count + 1
    return since, count


def _find(run: RecordedRun, runs: Sequence[RecordedRun], now: datetime, stale_days: float) -> Iterator[OutcomeIncident]:
    source = run.source or "the data"
    if not run.rows:
        left_out = f"; {run.bad_rows} bad rows were left out" if run.bad_rows else ""
        sentence = f"{source} has no rows to evaluate{left_out}"
        yield OutcomeIncident(key=EMPTY, kind="source", sentence=sentence, since=now, run_id=run.run_id)
        return
    since, count = unchanged_since(run, [each for each in runs if each.created <= run.created])
    if stale_days and count >= _LEAST_RUNS and now - since > timedelta(days=stale_days):
        sentence = (
            f"{source} has had the same responses and contexts since {since:%Y-%m-%d %H:%M} UTC, in {count} runs: "
            "is the job that writes it still running?"
        )
        yield OutcomeIncident(key=UNCHANGED, kind="source", sentence=sentence, since=since, run_id=run.run_id)
