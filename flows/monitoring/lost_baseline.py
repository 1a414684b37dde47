"""Find out whether a run without a baseline is the first of its evaluation, or the store of baselines was lost."""

from collections.abc import Sequence

from flows.monitoring.clock_checks import present
from flows.monitoring.monitored_run import MonitoredRun
from tasks.history.recorded_run import RecordedRun
from tasks.record.outcome import OutcomeIncident

KEY = "baseline"
"""Key of the incident."""


def find_lost_baseline(
    monitored_run: MonitoredRun, store: str, runs: Sequence[RecordedRun], run_id: str
) -> OutcomeIncident | None:
    """Return the incident that the store has no baseline although the history knows one; None for a first run.

    Args:
        store: Address of the store of baselines.
        runs: Earlier runs of the evaluation in the history, oldest first.
        run_id: Id of the run.
    """
    own = [run for run in runs if _has_same_baselines(run, monitored_run)]
    had = [run for run in own if run.outcome is not None and (run.outcome.accepted or run.outcome.baseline is not None)]
    if not had:
        return None
    accepted = next((run for run in reversed(had) if run.outcome is not None and run.outcome.accepted), None)
    count = f"{len(own)} earlier {'run' if len(own) == 1 else 'runs'}"
    known = "" if accepted is None else f", and that of {accepted.created:%Y-%m-%d %H:%M} UTC was accepted"
    advice = "RUN" if accepted is None else accepted.folder
    sentence = (
        f"there is no baseline in {store}, but the history has {count}{known}: the store is lost, or is another one. "
        f"This run does not become the baseline. Restore the store, or accept a run: assay accept {advice}"
    )
    return OutcomeIncident(key=KEY, kind="comparison", sentence=sentence, since=present(monitored_run), run_id=run_id)


def _has_same_baselines(run: RecordedRun, monitored_run: MonitoredRun) -> bool:
    """Return whether a run has its baselines where a monitored run has them."""
    if run.outcome is None or run.outcome.index != monitored_run.index:
        return False
    return not monitored_run.index or run.deployment == monitored_run.deployment
