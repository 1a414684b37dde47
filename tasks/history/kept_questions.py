"""Compare a run with the one before it over the questions of both, when some of the questions are others."""

from collections.abc import Iterator
from dataclasses import replace

from metric_core.errors import ConfigError, RunFolderError
from metric_core.statistics.pairs import pair_scores
from tasks.comparison.run_differences import TEST_COLUMNS
from tasks.comparison.run_pair import Matching, RunPair
from tasks.comparison.written_rows import find_written
from tasks.findings.table import find_in
from tasks.history.recorded_folder import open_run
from tasks.history.recorded_run import DATA, KeptQuestions, RecordedRun
from tasks.runs.finished_run import FinishedRun


def add_kept_questions(run: RecordedRun, before: RecordedRun | None) -> RecordedRun:
    """Return a run with what its details say about the questions that it shares with the run before.

    They say nothing if the questions are the same, or if no row is shared, and why they are not known if the folder of
    the run before cannot be read.

    Args:
        before: The latest run before that finished; None if there is none.
    """
    if before is None or before.versions.get(DATA) in {None, run.versions.get(DATA)} or DATA not in run.versions:
        return run
    try:
        kept = _compare(RunPair.from_runs(open_run(before), FinishedRun(run.folder), Matching()), before)
    except RunFolderError as error:
        return replace(run, details=run.details.model_copy(update={"kept_unknown": str(error)}))
    except ConfigError:  # they share no row
        return run
    return replace(run, details=run.details.model_copy(update={"kept_questions": kept}))


def _compare(pair: RunPair, before: RecordedRun) -> KeptQuestions:
    assert pair.a is not None  # noqa: S101 it was paired with the run before
    changes = pair.changes()
    changed = {row for row, columns in changes.changed.items() if not set(TEST_COLUMNS).isdisjoint(columns)}
    return KeptQuestions(
        run_id=before.run_id,
        created=before.created.isoformat(),
        rows=len(changes.changed) + changes.unchanged - len(changed),
        changed=len(changed),
        gone=len(changes.removed),
        retired=find_written(pair.a, changes.removed).count,
        new=len(changes.added),
        figures=dict(_figures(pair, changed)),
    )


def _figures(pair: RunPair, left_out: set[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield the means of metrics, and the figures of findings, in both runs without some rows."""
    for column in pair.iterate_columns():
        a, b = ({row: cell for row, cell in cells.items() if row not in left_out} for cells in (column.a, column.b))
        pairs = pair_scores(replace(column, a=a, b=b)).pairs
        for each in pairs:
            name = column.metric if len(pairs) == 1 else f"{column.metric} on {each.scale}"
            yield name, [float(each.a.mean()), float(each.b.mean())]
    sides = [side.run.summary for side in (pair.a, pair.b) if side is not None]
    for finding in find_in(sides):
        found = {} if finding.kept_figures is None else finding.kept_figures(pair, left_out)
        yield from ((name, [*values]) for name, values in found.items())
