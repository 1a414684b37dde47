"""List the findings in the order in which terminal and report show them.

A room is imported only if a run has one of its entries, or is about to compute one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, Literal

import pyarrow as pa

from metric_core.errors import PluginError
from tasks.comparison.run_comparison import ComparedFinding, RunComparison
from tasks.comparison.run_pair import RunPair
from tasks.documents.blocks import Block, Caution
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.finding import Finding, Lines, RunRecords, WrittenRows
from tasks.findings.parts import Figure
from tasks.findings.standing import PastRun, Standing
from tasks.plugins.load_object import Group, installed_names, load_object
from tasks.record.findings import Findings, HasEntry


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """A line of the table.

    Args:
        name: Module that declares the finding as `FINDING`, or the name of its entry point.
        entries: Names of its entries in the record or the summary of a run.
        is_counted: Function that returns whether a run counts entries of its summary; None if the finding has none.
        is_compared: Function that returns whether it compares two runs; None for those that have one of the entries.
        is_kept: True if the history keeps these entries.
        nested: Name of the run folder that it writes into that of the run; empty without one.
        needs: Rooms of the findings that it builds on.
    """

    name: str
    entries: tuple[str, ...]
    is_counted: Callable[[WrittenRows], bool] | None = None
    is_compared: Callable[[RunPair], bool] | None = None
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


def _has_panel(rows: WrittenRows) -> bool:
    """Return whether several judges answered the same questions.

    Of a cascade, two judges see only what one of them is unsure of: their agreement there says little.
    """
    run = rows.record
    return run.cascade is None and any((run.panel, *(judge.panel for judge in run.judges)))


def _is_labelled(rows: WrittenRows) -> bool:
    """Return whether people labelled rows of a run, or of the calibration of one of its metrics."""
    return bool(rows.record.calibration.metrics)


def _has_objectives(rows: WrittenRows) -> bool:
    return bool((rows.record.config.model_extra or {}).get("objectives"))


TABLE: tuple[ListedFinding, ...] = (
    ListedFinding("tasks.findings.diagnosis.diagnosis_finding", ("diagnosis",), lambda _: True, is_kept=True),
    ListedFinding("tasks.findings.judge.judge_finding", ("judge",)),
    ListedFinding("tasks.findings.agreement.agreement_finding", ("judge",)),
    ListedFinding("tasks.findings.certificate.certificate_finding", ("certificate",), is_kept=True),
    ListedFinding("tasks.findings.panel.panel_finding", ("agreement",), _has_panel, is_kept=True),
    ListedFinding("tasks.findings.cascade.cascade_finding", ("cascade",), lambda rows: rows.record.cascade is not None),
    ListedFinding("tasks.findings.repeats.repeats_finding", ("asked_again",)),
    ListedFinding("tasks.findings.variance.variance_finding", ("judge_variance",), needs=("anchor", "repeats")),
    ListedFinding("tasks.findings.corrected.corrected_finding", ("bias_corrected",), _is_labelled),
    ListedFinding(
        "tasks.findings.anchor.anchor_finding", ("anchor",), is_kept=True, nested="anchor", needs=("repeats",)
    ),
    ListedFinding("tasks.findings.rerun.rerun_finding", ("rerun",)),
    ListedFinding("tasks.findings.baseline.baseline_finding", ("baseline",)),
    ListedFinding(
        "tasks.findings.slices.slices_finding",
        ("slices",),
        lambda rows: bool(rows.slices),
        is_compared=lambda pair: bool(pair.slices),
    ),
    ListedFinding("tasks.findings.shared_rows.shared_rows_finding", ("shared_rows",), lambda _: True),
    ListedFinding(
        "tasks.findings.robustness.robustness_finding", ("robustness", "second_judge"), is_compared=lambda _: True
    ),
    ListedFinding(
        "tasks.findings.answer_lengths.answer_lengths_finding",
        ("answer_lengths",),
        is_compared=lambda pair: pair.a is not None,
    ),
    ListedFinding(
        "tasks.findings.reference_age.reference_age_finding",
        ("reference_age",),
        lambda _: True,
        is_compared=lambda pair: pair.a is not None,
    ),
    ListedFinding("tasks.findings.cost.cost_finding", ("cost",), is_kept=True),
    ListedFinding("tasks.findings.objectives.objectives_finding", ("objectives",), _has_objectives, is_kept=True),
    ListedFinding("tasks.findings.throughput.throughput_finding", ("throughput",), is_kept=True),
)


@cache
def listed_findings() -> tuple[ListedFinding, ...]:
    """Return all findings: those of this package, then those of installed packages, each named like its entry."""
    names = installed_names(Group.FINDINGS)
    return (*TABLE, *(ListedFinding(name, (name,), lambda _: True, is_kept=True) for name in names))


def nested_folders() -> tuple[str, ...]:
    """Return the names of the run folders that findings write into that of a run."""
    return tuple(each.nested for each in listed_findings() if each.nested)


def findings_of(run: RunRecords) -> Iterator[Finding]:
    """Yield the findings that a run has entries of."""
    yield from find_in((run.record, run.summary))


def find_in(parts: Iterable[Findings]) -> Iterator[Finding]:
    """Yield the findings that one of some records has entries of."""
    present = _present(parts)
    yield from (each.load() for each in listed_findings() if not present.isdisjoint(each.entries))


def _present(parts: Iterable[Findings]) -> set[str]:
    """Return the names of the entries of records that are not empty."""
    return {name for part in parts for name, entry in part.entries.items() if entry}


def count_findings(rows: WrittenRows) -> list[HasEntry]:
    """Return the entries of findings for the summary of a run."""
    loaded = (each.load() for each in listed_findings() if each.is_counted is not None and each.is_counted(rows))
    return [entry for each in loaded if each.count is not None for entry in each.count(rows) if entry is not None]


def compare_findings(rows: ComparedRows) -> tuple[ComparedFinding, ...]:
    """Return the comparisons of the findings of two runs, or what they say of a run that a gate checks."""
    sides = [] if rows.pair.a is None else [rows.pair.a.run, rows.pair.b.run]
    present = _present([part for run in sides for part in (run.record, run.summary)])
    loaded = (
        each.load()
        for each in listed_findings()
        if (each.is_compared(rows.pair) if each.is_compared is not None else not present.isdisjoint(each.entries))
    )
    compared = (each.comparison.compare(rows) for each in loaded if each.comparison is not None)
    return tuple(found for found in compared if found is not None)


def compared_findings(comparison: RunComparison) -> Iterator[FindingComparison]:
    """Yield how findings show two runs, for those that were compared."""
    present = {found.entry for found in comparison.findings}
    loaded = (each.load() for each in listed_findings() if not present.isdisjoint(each.entries))
    yield from (finding.comparison for finding in loaded if finding.comparison is not None)


def kept_entries(part: Findings) -> dict[str, Any]:
    """Return the entries of findings in a record that the history keeps, by name."""
    names = {name for each in listed_findings() if each.is_kept for name in each.entries}
    return {name: entry for name, entry in part.entries.items() if name in names and entry}


def lines_of(
    run: RunRecords, kind: Literal["headline", "lines", "details", "reading", "notes", "lacks"]
) -> Iterator[str]:
    """Yield the lines of all findings of a run, of one kind."""
    for finding in findings_of(run):
        lines: Lines = getattr(finding, kind)
        yield from lines(run)


def cautions_of(run: RunRecords) -> Iterator[Caution]:
    """Yield the warnings of all findings of a run."""
    cautions = (finding.caution(run) for finding in findings_of(run) if finding.caution is not None)
    yield from (each for each in cautions if each is not None)


def blocks_of(run: RunRecords) -> Iterator[Block]:
    """Yield the blocks of all findings of a run for the terminal."""
    for finding in findings_of(run):
        yield from () if finding.blocks is None else finding.blocks(run)


def table_of(run: RunRecords, entry: str) -> pa.Table:
    """Return the table of a finding; an empty one if no finding has it."""
    finding = next((each.load() for each in listed_findings() if entry in each.entries), None)
    return pa.table({}) if finding is None or finding.table is None else finding.table(run)


def compared_table(comparison: RunComparison, entry: str) -> pa.Table:
    """Return the table of the comparison of a finding; an empty one if no finding has it."""
    found = (each.load().comparison for each in listed_findings() if entry in each.entries)
    table = next((each.table for each in found if each is not None and each.table is not None), None)
    return pa.table({}) if table is None else table(comparison)


def figures_of(run: RunRecords) -> Iterator[Figure]:
    """Yield the figures of all findings of a run for monitoring."""
    for finding in findings_of(run):
        yield from () if finding.figures is None else finding.figures(run)


def standings_of(runs: Sequence[PastRun], now: datetime) -> Iterator[Standing]:
    """Yield how an evaluation stands over all its runs, as findings tell.

    Args:
        runs: Runs of the evaluation, oldest first.
        now: The present.
    """
    for standing in _find_standings(runs):
        yield from standing(runs, now)


def has_standings(runs: Sequence[PastRun]) -> bool:
    """Return whether a finding tells how an evaluation stands, which its last run with a result decides."""
    return bool(_find_standings(runs))


def _find_standings(runs: Sequence[PastRun]) -> list[Callable[[Sequence[PastRun], datetime], Iterable[Standing]]]:
    last = next((run for run in reversed(runs) if run.has_result), None)
    found = () if last is None else find_in((last.details,))
    return [finding.standing for finding in found if finding.standing is not None]
