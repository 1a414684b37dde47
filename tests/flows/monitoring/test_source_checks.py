"""Data with no rows, and data that have not changed for long."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.monitoring.source_checks import MOST_ROWS, ROWS, find_losses, find_source_incidents, is_loss
from tasks.history.run_entry import read_run_entry
from tasks.record.outcome import OutcomeCoverage
from tests.tasks.history.run_folders import START, write_run


def sentences(tmp_path: Path, answers: str, stale_days: float = 3, **tonight: Any) -> list[str]:
    """Return what is said about the last of the nights whose answers have these digests; `-` is a night that failed."""
    runs = []
    for night, digest in enumerate(answers):
        run: dict[str, Any] = {"stages": {"samples": {"digests": [digest]}}, "bad_row_count": 0}
        run |= {"status": "failed"} if digest == "-" else {}
        folder = write_run(tmp_path / f"{night}", night, **run | (tonight if night == len(answers) - 1 else {}))
        runs.append(read_run_entry(folder))
    found = find_source_incidents(runs[-1], runs, START + timedelta(days=night, minutes=1), stale_days)
    assert {each.kind for each in found} <= {"source"}
    return [each.sentence for each in found]


@pytest.mark.parametrize(
    ("answers", "since"),
    [
        ("aaaa", "2026-03-01 06:00 UTC, in 4 runs"),
        ("aaa", None),  # less than three days and a minute
        ("baaaa", "2026-03-02 06:00 UTC, in 4 runs"),
        ("aaba", None),
        ("aaa-a", "2026-03-01 06:00 UTC, in 4 runs"),
        ("a---a", None),  # two runs are too few to say so
    ],
)
def test_answers_that_stay_the_same_are_reported_with_the_time_since_when(
    tmp_path: Path, answers: str, since: str | None
) -> None:
    found = sentences(tmp_path, answers)
    if since is None:
        assert found == []
    else:
        (sentence,) = found
        assert sentence.startswith(f"data/answers.jsonl has had the same responses and contexts since {since}: ")


def test_unchanged_answers_are_not_reported_where_nobody_wants_it(tmp_path: Path) -> None:
    assert sentences(tmp_path, "aaaaaaaa", 0) == []


def test_run_without_rows_is_reported(tmp_path: Path) -> None:
    assert sentences(tmp_path / "a", "ab", rows=0) == ["data/answers.jsonl has no rows to evaluate"]
    found = sentences(tmp_path / "b", "ab", rows=0, bad_row_count=7)
    assert found == ["data/answers.jsonl has no rows to evaluate; 7 bad rows were left out"]


def losses(values: dict[str, tuple[int, int]], *open_keys: str) -> list[tuple[str, str]]:
    """Return the keys and sentences of what a run of sixty rows lacks."""
    return [
        (loss.key, loss.sentence) for loss in find_losses(OutcomeCoverage(rows=(60, 60), values=values), 0.9, open_keys)
    ]


@pytest.mark.parametrize(("rows", "open_keys", "is_told"), [(29, [ROWS], True), (30, [ROWS], False), (29, [], False)])
def test_rows_that_are_replaced_little_by_little_are_reported_again_when_most_are_gone(
    rows: int, open_keys: list[str], *, is_told: bool
) -> None:
    """A loss of most rows at once is one message."""
    found = {loss.key: loss.sentence for loss in find_losses(OutcomeCoverage(rows=(rows, 60)), 0.9, open_keys)}
    assert ROWS in found
    assert (MOST_ROWS in found) is is_told
    if is_told:
        assert found[MOST_ROWS].startswith("only 29 of 60 rows of the baseline are left")
        assert is_loss(MOST_ROWS)


def test_columns_and_values_that_are_missing_are_told() -> None:
    assert losses({"response": (54, 60), "topic": (33, 40)}) == [
        ("source: nulls: topic", "the column topic is empty in 7 of 40 rows in which the baseline has a value")
    ]
    assert losses({"response": (0, 60), "topic": (0, 60)}) == [
        ("source: columns", "the columns response, topic are empty in all rows, unlike in the baseline")
    ]
    assert losses({"remark": (0, 5)}) == [], "a column that few rows have may be empty"


def test_column_that_lost_its_last_values_stays_one_incident() -> None:
    [(key, sentence)] = losses({"topic": (0, 60)}, "source: nulls: topic")
    assert (key, sentence) == (
        "source: nulls: topic",
        "the column topic is empty in 60 of 60 rows in which the baseline has a value",
    )
