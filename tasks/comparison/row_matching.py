"""Decide by what the rows of two runs are matched if nobody says it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from metric_core.columns import USER_INPUT
from tasks.comparison.run_pair import Matching
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_grouping import ROW_ID
from tasks.sources.row_ids import is_digest


def match_by_questions(matching: Matching, a: Path | None, b: Path | None) -> Matching:
    """Return how to match the rows of two runs: by their questions, if their ids are digests of their content.

    Such a row has another id as soon as its answer is another one, so that no changed answer would be compared. A run
    with ids of its own, or in which a question is missing or asked twice, is matched by its ids.

    Args:
        matching: Columns that the user names; one for matching stays.
        a: Run folder; None if there is no other run.
        b: The other run folder, or None.

    Raises:
        RunFolderError: A folder does not hold a finished run.
    """
    if matching.match is not None or a is None or b is None:
        return matching
    runs = [dict(_questions(FinishedRun(folder))) for folder in (a, b)]
    differ = runs[0].keys() != runs[1].keys()
    are_digests = all(is_digest(row_id) for run in runs for row_id in run)
    are_unique = all(all(run.values()) and len(set(run.values())) == len(run) for run in runs)
    return replace(matching, match=USER_INPUT) if differ and are_digests and are_unique else matching


def _questions(run: FinishedRun) -> Iterator[tuple[str, str | None]]:
    for shard in run.samples([ROW_ID, USER_INPUT]):
        yield from zip(shard[ROW_ID].to_pylist(), shard[USER_INPUT].to_pylist(), strict=True)
