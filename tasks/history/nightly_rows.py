"""Read the means of earlier runs of a year for a gate, if each run has other rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC

from metric_core.errors import RunFolderError
from metric_core.statistics.nightly_bets import Night
from tasks.comparison.run_pair import Matching, RunRows
from tasks.history.recorded_folder import open_run
from tasks.history.recorded_run import DATA, RecordedMetric, RecordedRun
from tasks.history.runs_before import RunsBefore


@dataclass(frozen=True, slots=True)
class EarlierNights:
    """The earlier runs of the same calendar year.

    Args:
        means: Their means, by metric; empty if a row recurs from one run to the next: the same questions again are no
            new evidence.
        doubt: Sentence on why it is not known whether rows recur, so that they are taken to; empty if it is known.
    """

    means: Mapping[str, Sequence[Night]] = field(default_factory=dict)
    doubt: str = ""


def read_nights(run: RunRows, before: RunsBefore) -> EarlierNights:
    """Return the earlier runs of the same calendar year.

    Args:
        before: Runs before the run, with their metrics.
    """
    year = run.run.started.astimezone(UTC).year
    earlier = [each for each in before.runs if each.created.astimezone(UTC).year == year]
    if not earlier or _repeats_data(earlier):
        return EarlierNights()
    for each in earlier:
        if each.details.kept_unknown:
            return EarlierNights(doubt=each.details.kept_unknown)
    try:
        if not set(run.keys).isdisjoint(RunRows.from_run(open_run(earlier[-1]), Matching()).keys):
            return EarlierNights()
    except RunFolderError as error:
        return EarlierNights(doubt=str(error))
    nights: dict[str, list[Night]] = {}
    for each in earlier:
        for metric in each.metrics:
            if not metric.slice_column and (night := _night(metric)) is not None:
                nights.setdefault(metric.metric, []).append(night)
    return EarlierNights(nights)


def _repeats_data(runs: Sequence[RecordedRun]) -> bool:
    """Return whether a run repeats the data of another, or shares rows with the run before it."""
    digests = [each.versions.get(DATA) for each in runs]
    kept = (each.details.kept_questions for each in runs)
    return None in digests or len(set(digests)) < len(digests) or any(each is not None for each in kept)


def _night(metric: RecordedMetric) -> Night | None:
    if metric.mean is None or metric.deviation is None or not metric.scored:
        return None
    return Night(metric.scored, metric.mean, metric.deviation)
