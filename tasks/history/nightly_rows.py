"""Read the means of earlier runs of a year for a gate, if each run has other rows."""

from collections.abc import Sequence
from datetime import UTC, datetime

from metric_core.errors import AssayError
from metric_core.statistics.nightly_bets import Night
from tasks.comparison.run_pair import Matching, RunRows
from tasks.history.catalogue import Catalogue
from tasks.history.open_alarms import open_runs
from tasks.history.recorded_run import COMPLETED, DATA, RecordedMetric, RecordedRun


def read_nights(run: RunRows) -> dict[str, list[Night]]:
    """Return the means of the earlier runs of the same calendar year, by metric.

    They are empty if a row recurs from one run to the next, or if the history cannot be read: the same questions again
    are no new evidence.
    """
    record = run.run.record
    started = datetime.fromisoformat(record.created)
    started = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    year = datetime(started.astimezone(UTC).year, 1, 1, tzinfo=UTC)
    if not record.name:
        return {}
    try:
        found = Catalogue(record.config.history).runs(
            record.name, since=year, before=started, statuses=(COMPLETED,), metrics=True
        )
    except AssayError:
        return {}
    earlier = [each for each in found if each.run_id != record.run_id]
    if not earlier or not _have_other_rows(earlier) or _shares_rows(run, earlier[-1]):
        return {}
    nights: dict[str, list[Night]] = {}
    for each in earlier:
        for metric in each.metrics:
            if not metric.slice_column and (night := _night(metric)) is not None:
                nights.setdefault(metric.metric, []).append(night)
    return nights


def _have_other_rows(runs: Sequence[RecordedRun]) -> bool:
    """Return whether no run repeats the data of another, or shares rows with the run before it."""
    digests = [each.versions.get(DATA) for each in runs]
    kept = (each.details.kept_questions for each in runs)
    return None not in digests and len(set(digests)) == len(digests) and not any(each is not None for each in kept)


def _shares_rows(run: RunRows, before: RecordedRun) -> bool:
    """Return whether a run has rows of the run before it, or whether that is not known."""
    opened = open_runs([before], [])
    if not opened:
        return True
    return not set(run.keys).isdisjoint(RunRows.from_run(opened[0], Matching()).keys)


def _night(metric: RecordedMetric) -> Night | None:
    if metric.mean is None or metric.deviation is None or not metric.scored:
        return None
    return Night(metric.scored, metric.mean, metric.deviation)
