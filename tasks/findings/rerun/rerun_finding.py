"""Show what a rerun computed again."""

from collections.abc import Iterator

from tasks.findings.finding import Finding, RunRecords
from tasks.runtime.wording import shorten_path


def rerun_lines(run: RunRecords) -> Iterator[str]:
    """Yield a line on the run that was rerun, and on the rows that were recomputed."""
    record = run.record
    if record.parent is not None and record.rerun is not None:
        recomputed = f"{record.rerun.rows_anew:,} of {record.rows:,} rows recomputed"
        yield f"rerun of {shorten_path(record.parent.folder)}: {recomputed}"


FINDING = Finding(lines=rerun_lines)
