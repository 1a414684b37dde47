"""Hold the comparison of two runs: sides, differences, changes of the scores, and the result of a gate."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from metric_core.gates.rules import GateResult
from metric_core.statistics.comparison import MetricComparison
from metric_core.statistics.resampling import LEVEL, SEED
from tasks.comparison.changed_side import ChangedSide
from tasks.comparison.run_differences import RunDifferences
from tasks.record.run_record import DeploymentRecord
from tasks.runs.carried_evidence import describe_judgments
from tasks.runs.finished_run import FinishedRun


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison.

    Args:
        created: Start of the run.
        source: Evaluated data.
        judge: Model of the judge.
        repetition: Sentence on rows that repeat a text, if that makes the intervals of the run too narrow.
        index: Index and its version, if the run was about one.
        judgments: Line on the judgments of texts: how many were carried to the chunks of the index; None without any.
    """

    folder: str
    run_id: str
    created: str
    source: str
    rows: int
    judge: str
    repetition: str | None = None
    judgments: str | None = None
    index: str = ""

    @classmethod
    def from_run(cls, run: FinishedRun) -> "ComparedRun":
        """Return the side of a finished run."""
        record = run.record
        of = record.deployment or DeploymentRecord()
        return cls(
            str(run.folder),
            run_id=record.run_id,
            created=record.created,
            source=record.source,
            rows=record.rows,
            judge=record.judge.model,
            repetition=record.repetition,
            judgments=None if record.judgments is None else describe_judgments(record.judgments),
            index=" ".join(filter(None, (of.index, of.version))),
        )


class ComparedFinding(Protocol):
    """The comparison of a finding of two runs, whose type its room declares.

    Attributes:
        entry: Name of its entry in the JSON of a comparison.
    """

    entry: ClassVar[str]

    def to_json(self) -> Mapping[str, Any] | Sequence[Any]:
        """Return the entry."""


F = TypeVar("F", bound=ComparedFinding)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs compared, or one run checked against a gate.

    Args:
        a: Side of the baseline; None if a gate checks one run alone.
        b: Side of the run.
        differences: Differences besides the scores; None without a baseline.
        metrics: Comparisons of the metrics that both runs have.
        gate: Result of the gate; None without one.
        changed: Mapping from a metric that is better or worse to what changed, system or judge, if there is evidence.
        match: Column by which rows were matched; None means their ids.
        by: Column by which rows were grouped; None if they were not.
        weights: The option of the run that gives rows their weights; None if each row counted once.
        unknown_runs: Sentence on why the runs before the run are not known; empty if they are, or are not read.
        findings: Comparisons of the findings of both runs.
    """

    b: ComparedRun
    a: ComparedRun | None = None
    differences: RunDifferences | None = None
    metrics: tuple[MetricComparison, ...] = field(default=())
    gate: GateResult | None = None
    changed: Mapping[str, ChangedSide] = field(default_factory=dict)
    seed: int = SEED
    match: str | None = None
    by: str | None = None
    weights: str | None = None
    unknown_runs: str = ""
    findings: tuple[ComparedFinding, ...] = field(default=())

    def find(self, kind: type[F]) -> F | None:
        """Return the comparison of a finding; None if it was not compared."""
        return next((each for each in self.findings if isinstance(each, kind)), None)

    @property
    def not_alike(self) -> tuple[str, ...]:
        """Reasons why the runs are not like for like; empty if they are."""
        return self.differences.serious if self.differences is not None else ()


def comparison_to_dict(comparison: RunComparison) -> Mapping[str, Any]:
    """Return the comparison as JSON content."""
    content = asdict(replace(comparison, findings=()))
    del content["findings"]
    return {
        "like_for_like": not comparison.not_alike,
        "not_alike": list(comparison.not_alike),
        "level": LEVEL,
        **content,
        **{each.entry: each.to_json() for each in comparison.findings},
    }
