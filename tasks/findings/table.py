"""List the findings in the order in which terminal and report show them.

A room is imported only if a run has one of its entries, or is about to compute one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from metric_core.errors import PluginError
from tasks.findings.finding import Finding, Lines, RunRecords
from tasks.plugins.load_object import Group, installed_names, load_object
from tasks.record.findings import Findings


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """A line of the table.

    Args:
        name: Module that declares the finding as `FINDING`, or the name of its entry point.
        entries: Names of its entries in the record or the summary of a run.
        is_kept: True if the history keeps these entries.
    """

    name: str
    entries: tuple[str, ...]
    is_kept: bool = False

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


TABLE = (
    ListedFinding("tasks.findings.judge.judge_finding", ("judge",)),
    ListedFinding("tasks.findings.repeats.repeats_finding", ("asked_again",)),
    ListedFinding("tasks.findings.variance.variance_finding", ("judge_variance",)),
    ListedFinding("tasks.findings.anchor.anchor_finding", ("anchor",), is_kept=True),
    ListedFinding("tasks.findings.rerun.rerun_finding", ("rerun",)),
    ListedFinding("tasks.findings.baseline.baseline_finding", ("baseline",)),
    ListedFinding("tasks.findings.cost.cost_finding", ("cost",), is_kept=True),
    ListedFinding("tasks.findings.throughput.throughput_finding", ("throughput",), is_kept=True),
)


@cache
def listed_findings() -> tuple[ListedFinding, ...]:
    """Return all findings: those of this package, then those of installed packages, each named like its entry."""
    return (*TABLE, *(ListedFinding(name, (name,), is_kept=True) for name in installed_names(Group.FINDINGS)))


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
