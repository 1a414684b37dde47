"""Say of each outcome of a comparison, and of that of a gate, what it hangs on."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from metric_core.statistics.robustness import Robustness
from tasks.comparison.run_comparison import RunComparison
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.robustness.compared_outcomes import check_outcomes
from tasks.findings.robustness.gate_outcome import check_gate_outcome
from tasks.findings.robustness.row_parts import find_parts
from tasks.findings.robustness.second_judge_record import SecondJudgeRecord
from tasks.findings.robustness.second_verdicts import describe_second_judge, read_second_verdicts

_PER_LINE = 3
"""Number of metrics that a sentence names; more that are robust are counted."""


@dataclass(frozen=True, slots=True)
class MetricRobustness:
    """Rows, parts and judge that the outcome of a metric hangs on.

    Args:
        metric: Metric, with the scale if rows have different scales.
    """

    metric: str
    found: Robustness


@dataclass(frozen=True, slots=True)
class ComparedRobustness:
    """Rows, parts and judge that the outcomes of two runs hang on.

    Args:
        gate: The same of the outcome of the gate; None without one, or if it tests no mean.
        second: Sentence on what a second judge was asked; None without one.
    """

    entry: ClassVar[str] = "robustness"

    metrics: tuple[MetricRobustness, ...]
    gate: Robustness | None = None
    second: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry."""
        return {
            "metrics": [{"metric": each.metric, **_to_json(each.found)} for each in self.metrics],
            "gate": None if self.gate is None else _to_json(self.gate),
            "second_judge": self.second,
        }


def _to_json(found: Robustness) -> dict[str, Any]:
    return {"is_robust": found.is_robust, "sentence": found.sentence, **asdict(found)}


def compare(rows: ComparedRows) -> ComparedRobustness | None:
    """Return what the outcomes hang on; None without any."""
    if not rows.metrics and rows.gate is None:
        return None
    parts, second = find_parts(rows.pair), read_second_verdicts(rows.pair)
    metrics = tuple(
        MetricRobustness(each.metric if each.scale is None else f"{each.metric} on {each.scale}", found)
        for each, found in check_outcomes(rows, parts, second)
    )
    gate = None if rows.gate is None else check_gate_outcome(rows, rows.gate, parts, second)
    return ComparedRobustness(metrics, gate, describe_second_judge(rows.pair)) if metrics or gate is not None else None


def metric_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence for each metric whose outcome hangs on something, and one for those that hang on the same."""
    said: dict[tuple[bool, str], list[str]] = {}
    found = comparison.find(ComparedRobustness)
    every = () if found is None else found.metrics
    for each in every:
        said.setdefault((each.found.is_robust, each.found.sentence), []).append(f"{each.metric} ({each.found.outcome})")
    for (is_robust, sentence), metrics in said.items():
        if is_robust and len(metrics) > _PER_LINE:
            yield f"{len(metrics)} of {len(every)} outcomes: {sentence}"
            continue
        for first in range(0, len(metrics), _PER_LINE):  # Markdown shortens long sentences
            yield f"{', '.join(metrics[first : first + _PER_LINE])}: {sentence}"
    if found is not None and found.metrics and found.second is not None:
        yield found.second


def gate_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield what the outcome of the gate hangs on."""
    found = comparison.find(ComparedRobustness)
    if found is not None and found.gate is not None:
        yield f"the outcome of the gate ({found.gate.outcome}): {found.gate.sentence}"
        if not found.metrics and found.second is not None:
            yield found.second


def details(run: RunRecords) -> Iterator[str]:
    """Yield what the second judge of a run was asked."""
    if (found := run.record.find(SecondJudgeRecord)) is not None:
        yield found.sentence(run.record.rows)


FINDING = Finding(
    record=(SecondJudgeRecord,),
    details=details,
    comparison=FindingComparison(compare=compare, sentences=metric_sentences, gate_sentences=gate_sentences),
)
