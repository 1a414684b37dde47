"""Provide a comparison of two runs as an object: its table, its page, and its display in notebooks."""

from collections.abc import Sequence
from pathlib import Path

from flows.config.gate_file import load_gate
from flows.results.gated_comparison import CompareOptions, compare_runs
from flows.results.run_result import RunResult
from tasks.comparison.row_matching import match_by_questions
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_pair import Matching
from tasks.documents.comparison.comparison_table import metrics_table
from tasks.documents.run.run_table import RunTable
from tasks.findings.table import compared_table
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.runtime.atomic_files import write_output
from tasks.runtime.short_tracebacks import shortens_tracebacks


class ComparisonResult:
    """A run compared with a baseline."""

    def __init__(self, found: RunComparison) -> None:
        self.found = found

    @property
    def outcome(self) -> str | None:
        """The outcome of the gate: passed, failed or inconclusive; None without a gate."""
        return None if self.found.gate is None else str(self.found.gate.outcome)

    def metrics(self) -> RunTable:
        """Return a row per metric: both means, their difference and its interval, adjusted p, rows, outcome."""
        return metrics_table(self.found.metrics)

    def slices(self) -> RunTable:
        """Return a row per slice, metric and scale: both means, their difference and its interval, rows, outcome."""
        return RunTable(compared_table(self.found, "slices"))

    def markdown(self) -> str:
        """Return the comparison as Markdown."""
        return comparison_markdown(self.found)

    def report(self, path: str | Path) -> Path:
        """Write the comparison as one offline page, with the evidence of both runs side by side."""
        target = Path(path).expanduser()
        write_output(target, comparison_page(self.found), "the comparison")
        return target

    def _repr_markdown_(self) -> str:
        return self.markdown()


@shortens_tracebacks
def compare(  # noqa: PLR0913 one keyword per option of a comparison
    baseline: RunResult | str | Path,
    run: RunResult | str | Path,
    *,
    gate: str | Path | None = None,
    by: str | None = None,
    match: str | None = None,
    slices: Sequence[str] = (),
) -> ComparisonResult:
    """Compare a run with a baseline.

    Args:
        baseline: The baseline, or its run folder.
        run: The run, or its run folder.
        gate: Gate file to check the run against.
        by: Cluster column: rows that share a value are resampled together.
        match: Column by which rows are matched; default their ids, or their questions if ids are digests of content.
        slices: Columns that divide the rows into slices; default those of the run.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    folders = folder_of(baseline), folder_of(run)
    matching = match_by_questions(Matching(match, by, tuple(slices)), *folders)
    options = CompareOptions(gate=None if gate is None else load_gate(Path(gate)), matching=matching)
    return ComparisonResult(compare_runs(*folders, options))


def folder_of(run: RunResult | str | Path) -> Path:
    """Return the folder of a run that is given as an object or by its folder."""
    return run.folder if isinstance(run, RunResult) else Path(run)
