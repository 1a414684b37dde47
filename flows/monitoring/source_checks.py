"""Find what is wrong with the data of a run, whatever the scores are.

The data may be empty, lack rows or values of the baseline, or have had the same answers for long.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from tasks.comparison.written_rows import describe_retired
from tasks.history.recorded_run import ANSWERS, RecordedRun
from tasks.history.steady_time import steady_time
from tasks.record.outcome import OutcomeCoverage, OutcomeIncident

EMPTY, UNCHANGED = "source: empty", "source: unchanged"
ROWS, MOST_ROWS, COLUMNS, NULLS = "source: rows", "source: most rows", "source: columns", "source: nulls: "
"""Keys of the incidents; that of missing values ends with the column."""

HELD = timedelta(days=8)
"""Time without a loss after which one that has come back is over, such as rows that are missing every Sunday."""

_LEAST_RUNS = 3
"""Number of runs with the same answers, including this one, from which on the data count as unchanged."""


def find_source_incidents(
    run: RecordedRun, runs: Sequence[RecordedRun], now: datetime, stale_days: float
) -> list[OutcomeIncident]:
    """Return what is wrong with the data of a run, without a comparison.

    Args:
        runs: Runs of the evaluation in the history, oldest first.
        now: Time of the run.
        stale_days: Days for which answers may stay the same; 0 for any number.
    """
    return list(_find(run, runs, now, stale_days))


def unchanged_since(run: RecordedRun, earlier: Sequence[RecordedRun]) -> tuple[datetime, int]:
    """Return the start of the first of the runs in a row that had the same answers, and the number of these runs.

    Args:
        run: Latest run.
        earlier: Runs before it, oldest first; those that failed are ignored.
    """
    since, count = run.created, 1
    for each in reversed(earlier):
        if each.run_id == run.run_id or ANSWERS not in each.versions:
            continue
        if each.versions[ANSWERS] != run.versions.get(ANSWERS):
            break
        since, count = each.created, count + 1
    return since, count


def _find(run: RecordedRun, runs: Sequence[RecordedRun], now: datetime, stale_days: float) -> Iterator[OutcomeIncident]:
    source = run.source or "the data"
    if not run.rows:
        left_out = f"; {run.bad_rows} bad rows were left out" if run.bad_rows else ""
        sentence = f"{source} has no rows to evaluate{left_out}"
        yield OutcomeIncident(key=EMPTY, kind="source", sentence=sentence, since=now, run_id=run.run_id)
        return
    known = [each for each in runs if each.created <= run.created]
    since, count = unchanged_since(run, known)
    now = steady_time(now, [each.created for each in known if each.run_id != run.run_id])
    if stale_days and count >= _LEAST_RUNS and now - since > timedelta(days=stale_days):
        sentence = (
            f"{source} has had the same responses and contexts since {since:%Y-%m-%d %H:%M} UTC, in {count} runs: "
            "is the job that writes it still running?"
        )
        yield OutcomeIncident(key=UNCHANGED, kind="source", sentence=sentence, since=now, run_id=run.run_id)


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows or values of the baseline that a run lacks.

    Args:
        share: Share of the rows that are there, or that have not lost the value.
        is_retirement: True if all the rows are questions that the index no longer answers, and so retired.
    """

    key: str
    share: float
    sentence: str
    is_retirement: bool = False

    def advise(self, folder: str) -> str:
        """Return the loss and what to do in words."""
        advice = "If the index was to lose this, accept" if self.is_retirement else "Restore this, or accept"
        return f"{self.sentence}. {advice} the run as the new baseline: assay accept {folder}"


def describe_missing(kept: OutcomeCoverage) -> str:
    """Return in brackets which missing rows of the baseline are questions that retired; nothing if none is.

    >>> describe_missing(OutcomeCoverage(rows=(24, 31), retired=7, retired_from=("leave.md",)))
    ' (retired questions from the index, with evidence in leave.md)'
    """
    rows, before = kept.rows
    return f" ({describe_retired(kept.retired, before - rows, kept.retired_from)})" if kept.retired else ""


def is_loss(key: str) -> bool:
    """Return whether an incident is about rows or values of the baseline that are missing."""
    return key in {ROWS, MOST_ROWS, COLUMNS} or key.startswith(NULLS)


def find_losses(kept: OutcomeCoverage | None, least: float, open_keys: Collection[str] = ()) -> list[Loss]:
    """Return what a run lacks of its baseline, if it is too much.

    Args:
        kept: The part of its baseline that the run has; None if it was not compared with a baseline.
        least: Share of the rows that have to be there, and to have kept their values.
        open_keys: Keys of open incidents; a loss that is one of them counts until it is half as large.

    >>> [loss.sentence for loss in find_losses(OutcomeCoverage(rows=(31, 60), others=2), 0.9)]
    ['29 of 60 rows of the baseline are missing, and 2 rows are new']
    >>> kept = OutcomeCoverage(rows=(56, 60))
    >>> find_losses(kept, 0.9), len(find_losses(kept, 0.9, [ROWS]))
    ([], 1)
    """
    if kept is None:
        return []
    halfway = (1 + least) / 2
    return [loss for loss in _losses(kept, open_keys) if loss.share < (halfway if loss.key in open_keys else least)]


def find_loss_incidents(
    kept: OutcomeCoverage | None,
    least: float,
    run: RecordedRun,
    earlier: Sequence[RecordedRun],
    open_keys: Collection[str],
) -> list[OutcomeIncident]:
    """Return the incidents that a run lacks rows or values of its baseline, new and open ones.

    An open one is over when a run lacks less than half of what may be missing; if it has come back within two weeks,
    when no run of eight days lacked as much. So a share that varies around the limit, or a loss that comes back every
    week, is not reported again and again.

    Args:
        kept: The part of its baseline that the run has; None if it was not compared with a baseline.
        least: Share of the rows that have to be there, and to have kept their values.
        earlier: Runs before this one with the same baseline, oldest first; none if the baseline moves.
    """
    if kept is None:
        return []
    found = {loss.key: loss.advise(run.folder) for loss in find_losses(kept, least, open_keys)}
    recent = [each for each in earlier if run.created - each.created < 2 * HELD]
    past = [find_losses(each.outcome.kept if each.outcome else None, least, open_keys) for each in recent]
    for key in {*open_keys} - found.keys():
        lost = [(each, loss) for each, losses in zip(recent, past, strict=True) for loss in losses if loss.key == key]
        has_loss = [any(loss.key == key for loss in losses) for losses in past]
        stretches = sum(now and not before for before, now in pairwise([False, *has_loss]))
        if stretches > 1 and run.created - (last := lost[-1])[0].created < HELD:
            when = f"in the run of {last[0].created:%Y-%m-%d}; over after eight days without such a run"
            found[key] = f"{last[1].sentence} {when}"
    return [
        OutcomeIncident(key=key, kind="source", sentence=sentence, since=run.created, run_id=run.run_id)
        for key, sentence in found.items()
    ]


def _losses(kept: OutcomeCoverage, open_keys: Collection[str]) -> Iterator[Loss]:
    """Yield everything that is missing; a column that has lost its last values stays the incident that it was."""
    rows, before = kept.rows
    if rows < before:
        new = f", and {kept.others} rows are new" if kept.others else ""
        sentence = f"{before - rows} of {before} rows of the baseline are missing{describe_missing(kept)}{new}"
        yield Loss(ROWS, rows / before, sentence, kept.retired == before - rows)
        if rows < before / 2 and not {ROWS, MOST_ROWS}.isdisjoint(open_keys):
            sentence = f"only {rows} of {before} rows of the baseline are left: no other row raises an alarm"
            yield Loss(MOST_ROWS, rows / before, sentence)
    gone = {name: had for name, (has, had) in kept.values.items() if not has and f"{NULLS}{name}" not in open_keys}
    if gone:
        names = f"the columns {', '.join(gone)} are" if len(gone) > 1 else f"the column {next(iter(gone))} is"
        yield Loss(COLUMNS, 1 - max(gone.values()) / rows, f"{names} empty in all rows, unlike in the baseline")
    for name in kept.values.keys() - gone.keys():
        has, had = kept.values[name]
        sentence = f"the column {name} is empty in {had - has} of {had} rows in which the baseline has a value"
        yield Loss(f"{NULLS}{name}", 1 - (had - has) / rows, sentence)
