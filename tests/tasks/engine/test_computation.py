"""A row of a stage is taken from where it is known to be, found in the store, or computed, and stored once."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from metric_core.stages import Stage
from tasks.engine.computation import StageComputation, StageResult
from tasks.engine.stage_rows import StageRows
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import StageUsage
from tests.tasks.engine.small_runs import (
    FAILS,
    Asked,
    claims_table,
    make_plan,
    rows_of_samples,
    samples,
    verdicts_table,
)

ROWS = {"r0": "one two", "r1": "", "r2": "three", "r3": "four five six"}


class Computation:
    """A computation of claims for rows, in a store that is opened for it."""

    def __init__(
        self,
        folder: Path,
        rows: Mapping[str, str],
        known: PlacedRows | None = None,
        recipe: str | None = "one way",
        refresh: Sequence[Stage] = (),
    ) -> None:
        self.asked = Asked()
        self.store = RowStore(str(folder))
        self._samples = rows_of_samples(samples(rows))
        step = make_plan(str(folder), recipe=recipe, refresh=refresh).steps[Stage.CLAIMS]
        ids = pa.array(list(rows), pa.string())
        self.made = StageComputation(step, self.store, known or PlacedRows.nothing(len(rows)), ids)

    def rows(self, start: int, end: int) -> StageRows:
        """Return the claims of consecutive rows."""
        inputs = {Stage.SAMPLES: self._samples.cut(start, end)}
        return self.made.rows(start, inputs, self.asked.compute(Stage.CLAIMS))

    @property
    def rows_asked(self) -> list[str]:
        """The ids of the rows that were computed."""
        return self.asked.rows[Stage.CLAIMS]

    def check(self, rows: Mapping[str, str]) -> StageResult:
        """Return what was stored, which is the claims of rows."""
        result = self.made.store()
        assert self.store.read(Stage.CLAIMS, result.placed).equals(claims_table(rows))
        return result


def test_blocks_are_computed_in_any_order(tmp_path: Path) -> None:
    computation = Computation(tmp_path, ROWS)
    assert computation.rows(2, 4).table.equals(claims_table({row: ROWS[row] for row in ("r2", "r3")}))
    assert computation.rows(0, 2).table.equals(claims_table({row: ROWS[row] for row in ("r0", "r1")}))
    result = computation.check(ROWS)
    assert (result.computed, result.usage.questions) == (4, 6)
    assert result.placed.count.tolist() == [2, 0, 1, 3]
    assert len(result.placed.segments) == 1


def test_rows_are_known_or_found_or_computed(tmp_path: Path) -> None:
    earlier = Computation(tmp_path, {row: ROWS[row] for row in ("r1", "r3")})
    earlier.rows(0, 2)
    stored = earlier.check({row: ROWS[row] for row in ("r1", "r3")})
    known = PlacedRows.nothing(4).fill(np.array([1]), stored.placed.select(np.array([0])))
    computation = Computation(tmp_path, ROWS, known)
    assert computation.rows(0, 4).table.equals(claims_table(ROWS))
    assert computation.rows_asked == ["r0", "r2"]
    assert (computation.made.found, computation.made.computed) == (1, 2)
    result = computation.check(ROWS)
    # The usage of what is known counts where it was looked up.
    assert result.usage == StageUsage(questions=3) + StageUsage(questions=2, stored=2)


def test_rows_that_are_all_known_are_read_in_their_order(tmp_path: Path) -> None:
    earlier = Computation(tmp_path, ROWS)
    earlier.rows(0, 4)
    turned = dict(reversed(ROWS.items()))
    computation = Computation(tmp_path, turned, earlier.check(ROWS).placed.select(np.array([3, 2, 1, 0])))
    assert computation.rows(0, 4).table.equals(claims_table(turned))
    result = computation.check(turned)
    assert (computation.rows_asked, result.computed, result.usage) == ([], 0, StageUsage())


@pytest.mark.parametrize("changes", [{"refresh": [Stage.CLAIMS]}, {"recipe": "another way"}, {"recipe": None}], ids=str)
def test_stored_rows_are_not_used(tmp_path: Path, changes: Mapping[str, object]) -> None:
    Computation(tmp_path, ROWS).rows(0, 4)
    for _ in range(2):
        computation = Computation(tmp_path, ROWS, **changes)  # type: ignore[arg-type] # one of the options
        computation.rows(0, 4)
        assert computation.rows_asked == ["r0", "r2", "r3"]
        computation.check(ROWS)
        if changes == {"recipe": "another way"}:
            break


def test_a_row_with_a_failed_answer_is_in_the_table_and_computed_again(tmp_path: Path) -> None:
    rows = {"r0": "one", "r1": f"two {FAILS}", "r2": "three"}
    step, ids = make_plan(str(tmp_path)).steps[Stage.VERDICTS], pa.array(list(rows))
    claims = StageRows.from_table(Stage.CLAIMS, claims_table(rows), ids)
    for expected in (["r0", "r1", "r2"], ["r1"], ["r1"]):
        asked, store = Asked(), RowStore(str(tmp_path))
        computation = StageComputation(step, store, PlacedRows.nothing(3), ids)
        found = computation.rows(0, {Stage.CLAIMS: claims}, asked.compute(Stage.VERDICTS))
        assert found.table.equals(verdicts_table(rows))
        assert asked.rows[Stage.VERDICTS] == expected
        assert store.read(Stage.VERDICTS, computation.store().placed).equals(verdicts_table(rows))


def test_a_block_whose_computation_failed_is_computed_by_the_next_attempt(tmp_path: Path) -> None:
    computation = Computation(tmp_path, ROWS)
    computation.rows(0, 2)

    def fail(_: object) -> None:
        raise ConnectionError("the server is away")

    with pytest.raises(ConnectionError):
        computation.made.rows(2, {Stage.SAMPLES: rows_of_samples(samples({"r2": "three", "r3": ""}))}, fail)  # type: ignore[arg-type] # does not return
    computation.rows(2, 4)
    assert computation.rows_asked == ["r0", "r2", "r3"]
    assert computation.check(ROWS).computed == 4
