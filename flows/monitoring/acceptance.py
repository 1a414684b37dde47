"""Accept a finished run as the baseline on request."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.publishing.history_record import record_in_history
from flows.publishing.run_subject import subject_name
from tasks.record.outcome import RunOutcome
from tasks.record.run_record import DeploymentRecord
from tasks.runs.baselines import DEFAULT_DEPLOYMENT, EVALUATIONS, Baseline, Baselines
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import read_outcome, write_outcome


@dataclass(frozen=True, slots=True)
class ManualAcceptance:
    """A run that a person accepted.

    Args:
        earlier: Baseline before; None if there was none.
        warnings: Reason why the history does not know it; empty if it does.
    """

    baseline: Baseline
    earlier: Baseline | None
    warnings: tuple[str, ...] = ()


def accept_run(folder: Path, root: str | None = None) -> ManualAcceptance:
    """Make a finished run the baseline, even if its version is older than that of the baseline.

    Args:
        root: Store of baselines; None means that of the monitored run, or else ASSAY_HOME/baselines.

    Raises:
        RunFolderError: The folder is not that of a finished run.
        AssayError: The store of baselines cannot be used.
    """
    run = FinishedRun(folder)
    outcome = read_outcome(run.folder) or _unmonitored(run)
    deployment = (run.record.deployment or DeploymentRecord()).name or DEFAULT_DEPLOYMENT
    store = Baselines(root or outcome.baselines, deployment if outcome.index else EVALUATIONS)
    key = outcome.index or outcome.name
    earlier = store.current(key)
    baseline = Baseline(
        index=key,
        version=outcome.version,
        announced=run.started,
        run_id=run.run_id,
        folder=str(run.folder),
        dataset=run.record.source,
        accepted=datetime.now(UTC),
        why="manual",
    )
    store.accept(baseline)
    message = f"{outcome.message}; accepted manually" if outcome.message else "accepted manually"
    changes: dict[str, Any] = {"accepted": True, "message": message, "baselines": store.root}
    write_outcome(run.folder, outcome.model_copy(update=changes))
    warnings = record_in_history(run.record.config.history, run.folder)
    return ManualAcceptance(baseline, earlier, warnings)


def _unmonitored(run: FinishedRun) -> RunOutcome:
    """Return the outcome of a run that `assay run` or a deployment evaluated without the chain."""
    record, subject, started = run.record, run.record.deployment or DeploymentRecord(), run.started
    index = subject.index
    name = record.name or subject_name(record.config.name, record.source, index)
    version = subject.version or f"{started:%Y-%m-%dT%H:%M:%SZ}"
    return RunOutcome(name=name, trigger="manual", index=index, version=version)
