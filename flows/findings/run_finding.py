"""Define what a run computes for a finding."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from flows.dry_run.dry_run_result import DryRun, FindingDryRun
from flows.execution.run import Run
from flows.planning.run_plan import RunPlan
from tasks.record.findings import HasEntry
from tasks.record.run_record import RunRecord
from tasks.rows.computed_tables import RunTables


@dataclass(frozen=True, slots=True)
class Found:
    """A result of a finding.

    Args:
        entry: Entry of the record; None without one.
        warnings: Warnings of the run.
    """

    entry: HasEntry | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComputedRun:
    """A run whose rows are computed.

    Args:
        tables: The tables of the run.
        rows: Number of rows that were computed.
        record: Record of the run with the entries so far.
        warnings: Warnings of the findings so far.
    """

    run: Run
    tables: RunTables
    rows: int
    record: RunRecord
    warnings: tuple[str, ...] = ()

    def with_found(self, found: Found) -> "ComputedRun":
        """Return the run with what it found out."""
        record = self.record.with_findings(found.entry)
        return replace(self, record=record, warnings=(*self.warnings, *found.warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinding:
    """A finding that a run computes before its folder is written. Everything is optional.

    Args:
        compute: Function that computes it once the rows are computed.
        settle: Function that looks again once the results are written; it returns None if nothing changes.
        is_derived: True if it is computed again once another finding has changed.
        preview: Function from a plan and the dry run of its rows to what the finding would ask, by the names in its
            line of the table.
        spent: Function that returns what a run that did not finish has of it.
    """

    compute: Callable[[ComputedRun], Found] | None = None
    settle: Callable[[ComputedRun], Found | None] | None = None
    is_derived: bool = False
    preview: Callable[[RunPlan, DryRun], Mapping[str, FindingDryRun]] | None = None
    spent: Callable[[], HasEntry | None] | None = None
