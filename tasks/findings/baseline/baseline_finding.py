"""Show what a run shares with the run that it was compared with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tasks.findings.finding import Finding, RunRecords
from tasks.findings.parts import Fact
from tasks.record.other_runs import BaselineRecord
from tasks.runtime.wording import shorten_path


def baseline_lines(run: RunRecords) -> Iterator[str]:
    """Yield a line on the baseline."""
    if (baseline := run.record.find(BaselineRecord)) is not None:
        yield describe_baseline(baseline)


def describe_baseline(baseline: BaselineRecord) -> str:
    """Return how many rows changed since the baseline, and how many questions were asked."""
    return f"compared with {shorten_path(baseline.folder)}: {_row_counts(baseline)}; {_question_counts(baseline)}"


def baseline_facts(run: RunRecords) -> Iterator[Fact]:
    """Yield the folder of the baseline, with the numbers of rows by what became of them."""
    if (baseline := run.record.find(BaselineRecord)) is None:
        return
    counts = ", ".join(f"{count:,} row{'s' * (count != 1)} {name}" for name, count in baseline.rows)
    columns = ", ".join(f"{column} {count:,}" for column, count in baseline.changed_columns.items())
    yield Fact("Baseline", (baseline.folder,), counts + (f" ({columns})" if columns else ""))


def changed_columns(run: RunRecords, _row_ids: Sequence[str]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that returns the columns of a row that changed since the baseline."""
    baseline = run.record.find(BaselineRecord)
    changed = {} if baseline is None else {row.row_id: row.columns for row in baseline.rows_changed}
    return lambda sample: {"changed": changed.get(sample["row_id"], ())}


def earlier_means(run: RunRecords) -> Mapping[str, float]:
    """Return the mean of each metric in the baseline."""
    baseline = run.record.find(BaselineRecord)
    return {} if baseline is None else baseline.means


def _row_counts(baseline: BaselineRecord) -> str:
    rows = baseline.rows
    columns = ", ".join(f"{column} {count:,}" for column, count in baseline.changed_columns.items())
    noun = "row" if rows.changed == 1 else "rows"
    parts = [f"{rows.changed:,} {noun} changed ({columns})"] if rows.changed else []
    parts += [f"{count:,} {kind}" for kind, count in (("added", rows.added), ("removed", rows.removed)) if count]
    return ", ".join(parts) or "no row changed"


def _question_counts(baseline: BaselineRecord) -> str:
    return f"{baseline.asked:,} of {baseline.questions:,} questions asked"


FINDING = Finding(
    record=(BaselineRecord,),
    lines=baseline_lines,
    provenance=baseline_facts,
    rows=changed_columns,
    means=earlier_means,
)
