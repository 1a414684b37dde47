"""A comparison of two runs whole: who they are, what differs, how the scores changed, what a gate says."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from metric_core.gates.rules import GateResult
from metric_core.statistics.comparison import MetricComparison
from metric_core.statistics.resampling import LEVEL, SEED
from tasks.comparison.run_differences import RunDifferences
from tasks.runs.finished_run import FinishedRun


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs.

    Args:
        folder: its folder.
        run_id: its id.
        created: when it ran.
        source: what it evaluated.
        rows: how many rows.
        judge: its judge's model.
    """

    folder: str
    run_id: str
    created: str
    source: str
    rows: int
    judge: str

    @classmethod
    def of(cls, run: FinishedRun) -> "Side":
        """What a run's manifest says."""
        texts = {name: str(run.manifest.get(name) or "") for name in ("run_id", "created", "source")}
        judge = (run.manifest.get("judge") or {}).get("model") or ""
        return cls(folder=str(run.folder), rows=int(run.manifest.get("rows") or 0), judge=str(judge), **texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs compared, or one run held against a gate.

    Args:
        a: the baseline; None where a gate looks at one run alone.
        b: the run.
        differences: what differs besides the scores; None without a baseline.
        metrics: the comparison of every metric that both runs have.
        gate: what the gate says; None without one.
        bias_corrected: Differences of the bias-corrected means, as `correct_differences` returns them.
        seed: where resampling started.
        match: the column by which rows were matched; None: their ids.
        by: the column by which rows were grouped; None: every row stands alone.
    """

    b: Side
    a: Side | None = None
    differences: RunDifferences | None = None
    metrics: tuple[MetricComparison, ...] = field(default=())
    gate: GateResult | None = None
    bias_corrected: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = SEED
    match: str | None = None
    by: str | None = None

    @property
    def not_alike(self) -> tuple[str, ...]:
        """Why the runs are not like for like; empty if they are."""
        return self.differences.serious if self.differences is not None else ()


def comparison_to_dict(comparison: RunComparison) -> Mapping[str, Any]:
    """The comparison as JSON has it."""
    content = asdict(comparison)
    return {
        "like_for_like": not comparison.not_alike,
        "not_alike": list(comparison.not_alike),
        "level": LEVEL,
        **content,
    }
