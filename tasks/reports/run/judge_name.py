"""Name the judge of a run."""

from tasks.models.judges.protocol import NO_JUDGE, JudgeIdentity
from tasks.options.model_backends import find_backend
from tasks.plugins.load_object import Group
from tasks.record.run_record import RunRecord


def judge_line(record: RunRecord) -> str | None:
    """Return which judge gave the verdicts of a run, and whether it is calibrated; None for a run without a judge."""
    if (name := judge_name(record)) is None:
        return None
    measured = ", ".join(record.calibration.metrics)
    calibrated = f"calibrated for {measured}" if measured else "not calibrated"
    return f"{name}, {calibrated}"


def judge_name(record: RunRecord) -> str | None:
    """Return the name by which people know the judge of a run; None for a run without a judge."""
    if record.judge.backend == NO_JUDGE.backend:
        return None
    if panel := judge_panel(record):
        return f"panel of {len(panel)}"
    return find_backend(Group.JUDGES, record.judge.backend).label or record.judge.model


def judge_panel(record: RunRecord) -> tuple[JudgeIdentity, ...]:
    """Return the members of the panel of a run; empty without one."""
    return () if record.cascade is not None else record.panel
