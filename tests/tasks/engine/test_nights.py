"""Night after night, whatever changes: the tables of a run without a store, and only new content is computed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.stages import Stage
from tests.tasks.engine.small_runs import FAILS, claims_table, make_plan, run_small, verdicts_table

RESPONSES = st.sampled_from(["one", "two", "one two", " one  two", FAILS, f"one {FAILS}"])
NIGHTS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("abcdefg"), RESPONSES), min_size=1, unique_by=lambda row: row[0]),
        st.integers(1, 4),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)
"""For each night, the rows with their responses, the rows per shard, and the rows per window."""


@pytest.mark.simulation
@settings(max_examples=40)
@given(NIGHTS)
def test_tables_are_equal_and_only_new_content_is_computed(
    nights: Sequence[tuple[Sequence[tuple[str, str]], int, int]],
) -> None:
    claimed: set[tuple[str, str]] = set()
    judged: set[tuple[str, tuple[str, ...]]] = set()
    with TemporaryDirectory() as root:
        for pairs, shard_rows, window_rows in nights:
            rows = dict(pairs)
            run = run_small(make_plan(root, window_rows, shard_rows), rows)
            assert run.table(Stage.CLAIMS).equals(claims_table(rows).combine_chunks())
            assert run.table(Stage.VERDICTS).equals(verdicts_table(rows).combine_chunks())
            # Other blanks in a response are a new response, with the same claims.
            words = {row_id: tuple(response.split()) for row_id, response in rows.items()}
            assert run.asked == {
                Stage.CLAIMS: sorted(row for row, response in rows.items() if (row, response) not in claimed),
                Stage.VERDICTS: sorted(row for row in rows if (row, words[row]) not in judged),
            }
            claimed |= set(rows.items())
            judged |= {each for each in words.items() if FAILS not in each[1]}


def test_a_run_that_asks_for_a_stage_again_keeps_what_it_is_told_now(tmp_path: Path) -> None:
    rows: Mapping[str, str] = {"a": "one", "b": "two"}
    run_small(make_plan(str(tmp_path)), rows)
    again = run_small(make_plan(str(tmp_path), refresh=[Stage.CLAIMS]), rows)
    assert again.asked == {Stage.CLAIMS: ["a", "b"], Stage.VERDICTS: []}  # the claims are the same
    assert run_small(make_plan(str(tmp_path)), rows).asked == {Stage.CLAIMS: [], Stage.VERDICTS: []}
