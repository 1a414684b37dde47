"""List the findings in the order in which terminal and report show them.

A room is imported only if a run has one of its entries, or is about to compute one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from metric_core.errors import PluginError
from metric_core.statistics.judge_variance import JudgeVariance
from tasks.comparison.judge_evidence import JudgeEvidence
from tasks.findings.finding import Finding, Lines, RunRecords, SecondJudgments
from tasks.plugins.load_object import Group, installed_names, load_object
from tasks.record.findings import Findings
from tasks.record.run_record import RunRecord
from tasks.runs.finished_run import FinishedRun


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """A line of the table.

    Args:
        name: Module that declares the finding as `FINDING`, or the name of its entry point.
        entries: Names of its entries in the record or the summary of a run.
        is_kept: True if the history keeps these entries.
        nested: Name of the run folder that it writes into that of the run; empty without one.
        needs: Rooms of the findings that it builds on.
    """

    name: str
    entries: tuple[str, ...]
    is_kept: bool = False
    nested: str = ""
    needs: tuple[str, ...] = ()

    def load(self) -> Finding:
        """Return the finding.

        Raises:
            PluginError: An installed package has something else under the name.
        """
        if "." in self.name:
            found: Finding = import_module(self.name).FINDING
            return found
        loaded = load_object(Group.FINDINGS, self.name).obj
        if not isinstance(loaded, Finding):
            raise PluginError(f"the finding {self.name!r} must be a Finding, got {loaded!r}")
        return loaded


TABLE: tuple[ListedFinding, ...] = (
    ListedFinding("tasks.findings.judge.judge_finding", ("judge",)),
    ListedFinding("tasks.findings.repeats.repeats_finding", ("asked_again",)),
    ListedFinding("tasks.findings.variance.variance_finding", ("judge_variance",), needs=("anchor", "repeats")),
    ListedFinding(
        "tasks.findings.anchor.anchor_finding", ("anchor",), is_kept=True, nested="anchor", needs=("repeats",)
    ),
    ListedFinding("tasks.findings.rerun.rerun_finding", ("rerun",)),
    ListedFinding("tasks.findings.baseline.baseline_finding", ("baseline",)),
    ListedFinding("tasks.findings.cost.cost_finding", ("cost",), is_kept=True),
    ListedFinding("tasks.findings.throughput.throughput_finding", ("throughput",), is_kept=True),
)


@cache
def listed_findings() -> tuple[ListedFinding, ...]:
    """Return all findings: those of this package, then those of installed packages, each named like its entry."""
    return (*TABLE, *(ListedFinding(name, (name,), is_kept=True) for name in installed_names(Group.FINDINGS)))


def nested_folders() -> tuple[str, ...]:
    """Return the names of the run folders that findings write into that of a run."""
    return tuple(each.nested for each in listed_findings() if each.nested)


def findings_of(run: RunRecords) -> Iterator[Finding]:
    """Yield the findings that a run has entries of."""
    yield from find_in((run.record, run.summary))


def find_in(parts: Iterable[Findings]) -> Iterator[Finding]:
    """Yield the findings that one of some records has entries of."""
    present = {name for part in parts for name in part.model_fields_set}
    yield from (each.load() for each in listed_findings() if not present.isdisjoint(each.entries))


def kept_entries(part: Findings) -> dict[str, Any]:
    """Return the entries of findings in a record that the history keeps, by name."""
    names = {name for each in listed_findings() if each.is_kept for name in each.entries}
    return {name: entry for name, entry in part.entries.items() if name in names and entry}


def lines_of(run: RunRecords, kind: Literal["lines", "details", "notes", "lacks"]) -> Iterator[str]:
    """Yield the lines of all findings of a run, of one kind."""
    for finding in findings_of(run):
        lines: Lines = getattr(finding, kind)
        yield from lines(run)


def judge_evidence(before: FinishedRun, after: FinishedRun) -> JudgeEvidence:
    """Return what the findings of two runs say about their judge; of several that say something, the first."""
    found = (each.judge_evidence for each in find_in((before.record, after.record)))
    return next((find(before, after) for find in found if find is not None), JudgeEvidence())


def judge_variances(record: RunRecord) -> dict[str, JudgeVariance]:
    """Return the variance of the judge's scores by metric, as far as a run knows it."""
    found = (each.judge_variances for each in find_in((record,)))
    return {metric: variance for find in found if find is not None for metric, variance in find(record).items()}


def second_judgments(record: RunRecord) -> dict[str, SecondJudgments]:
    """Return metric -> row id -> the score of a row of a run and the one when it was judged again."""
    found = (each.second_judgments for each in find_in((record,)))
    return {metric: judged for find in found if find is not None for metric, judged in find(record).items()}
