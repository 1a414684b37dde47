"""Find what a wrong clock has left: an accepted run, or runs in the history, that lie in the future.

Runs are ordered by the times at which they started. A machine whose clock was ahead for one night leaves a run that all
later ones seem to precede, until the time of that run has come. A run leaves such runs out, and says so.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from flows.monitoring.monitored_run import MonitoredRun
from tasks.history.recorded_run import RecordedRun
from tasks.record.outcome import OutcomeIncident
from tasks.runs.baselines import CLOCK_TOLERANCE, Baseline

KEY = "clock"
"""Key of the incident."""

BEHIND = "most earlier runs lie in the future, so the clock of this machine seems to be behind"


def present(monitored_run: MonitoredRun) -> datetime:
    """Return the present time of a run: a version of an index may have been announced long ago."""
    return datetime.now(UTC) if monitored_run.index else monitored_run.announced


def keep_past(runs: Sequence[RecordedRun], now: datetime) -> list[RecordedRun]:
    """Return the runs that do not lie in the future."""
    return [run for run in runs if run.created <= now + CLOCK_TOLERANCE]


def is_clock_behind(runs: Sequence[RecordedRun], now: datetime) -> bool:
    """Return whether more than half of the earlier runs lie in the future: then the present time is wrong."""
    return len(keep_past(runs, now)) * 2 < len(runs) and len(runs) > 1


def find_clock_incidents(
    monitored_run: MonitoredRun, baseline: Baseline | None, runs: Sequence[RecordedRun], run_id: str
) -> list[OutcomeIncident]:
    """Return the incident that the baseline, or runs of the history, lie in the future, if any does.

    Args:
        baseline: Baseline of the run; None if it has none.
        runs: Earlier runs of the evaluation.
        run_id: Id of the run.
    """
    now = present(monitored_run)
    sentence = "; ".join(_describe(monitored_run, baseline, runs, now))
    found = OutcomeIncident(key=KEY, kind="record", sentence=sentence, since=now, run_id=run_id)
    return [found] if sentence else []


def _describe(
    monitored_run: MonitoredRun, baseline: Baseline | None, runs: Sequence[RecordedRun], now: datetime
) -> Iterator[str]:
    if is_clock_behind(runs, now):
        latest = max(run.created for run in runs)
        yield f"{BEHIND}: it says {now:%Y-%m-%d %H:%M} UTC, and the latest run is of {latest:%Y-%m-%d %H:%M}. Set it"
        return
    if baseline is not None and baseline.is_ahead(now):
        named = f"version {baseline.version}" if monitored_run.index else f"the run of {baseline.version}"
        yield (
            f"the baseline, {named}, lies in the future: a clock was ahead when it was accepted. It stays the baseline "
            "until another run is accepted: assay accept RUN"
        )
    if ahead := [run for run in runs if run.created > now + CLOCK_TOLERANCE]:
        first, count = ahead[0], len(ahead)
        yield (
            f"{count} {'run' if count == 1 else 'runs'} in the history {'lies' if count == 1 else 'lie'} in the "
            f"future, {first.run_id} at {first.created:%Y-%m-%d %H:%M} UTC: a clock was ahead. This run is compared "
            f"with the others; to remove the entry: assay history --forget {first.run_id}"
        )
