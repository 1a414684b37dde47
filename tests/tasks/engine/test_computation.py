"""A row of a stage is taken from where it is known to be, found in the store, or computed, and stored once."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from metric_core.stages import Stage
from tasks.engine.computation import Window, store_windows
from tasks.rows.places import Places
from tasks.rows.row_store import RowStore
from tasks.rows.stage_rows import StageRows
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
        known: Places | None = None,
        recipe: str | None = "one way",
        refresh: Sequence[Stage] = (),
    ) -> None:
        self.asked = Asked()
        self.store = RowStore(str(folder))
        self.windows: list[Window] = []
        self._samples = rows_of_samples(samples(rows))
        self._step = make_plan(str(folder), recipe=recipe, refresh=refresh).steps[Stage.CLAIMS]
        self._known = known or Places.nothing(len(rows))

    def rows(self, start: int, end: int) -> StageRows:
        """Return the claims of consecutive rows."""
        window = Window(self._step, self._known.cut(start, end))
        read = {Stage.SAMPLES: self._samples.cut(start, end)}
        found = window.compute(self.store, read, self.asked.compute(Stage.CLAIMS))
        self.windows.append(window)
        return found

    @property
    def rows_asked(self) -> list[str]:
        """The ids of the rows that were computed."""
        return self.asked.rows[Stage.CLAIMS]

    def check(self, rows: Mapping[str, str]) -> tuple[Places, StageUsage]:
        """Return what was stored, which is the claims of rows."""
        places, usage = store_windows(self.store, self.windows)
        assert self.store.read(Stage.CLAIMS, places).equals(claims_table(rows))
        return places, usage


def test_windows_are_stored_together(tmp_path: Path) -> None:
    computation = Computation(tmp_path, ROWS)
    assert computation.rows(0, 2).table.equals(claims_table({row: ROWS[row] for row in ("r0", "r1")}))
    assert computation.rows(2, 4).table.equals(claims_table({row: ROWS[row] for row in ("r2", "r3")}))
    places, usage = computation.check(ROWS)
    assert usage.questions == 6
    assert places.count.tolist() == [2, 0, 1, 3]
    assert len(places.segments) == 1


def test_rows_are_known_or_found_or_computed(tmp_path: Path) -> None:
    earlier = Computation(tmp_path, {row: ROWS[row] for row in ("r1", "r3")})
    earlier.rows(0, 2)
    stored, _ = earlier.check({row: ROWS[row] for row in ("r1", "r3")})
    known = Places.nothing(4).fill(np.array([1]), stored.select(np.array([0])))
    computation = Computation(tmp_path, ROWS, known)
    assert computation.rows(0, 4).table.equals(claims_table(ROWS))
    assert computation.rows_asked == ["r0", "r2"]
    assert computation.windows[0].found.tolist() == [3]
    # The usage of what is known counts where it was looked up.
    assert computation.check(ROWS)[1] == StageUsage(questions=3) + StageUsage(questions=2, stored=2)


def test_a_row_that_has_been_looked_up_is_computed(tmp_path: Path) -> None:
    Computation(tmp_path, ROWS).rows(0, 4)
    computation = Computation(tmp_path, ROWS, Places.nothing(4).looked_up())
    assert computation.rows(0, 4).table.equals(claims_table(ROWS))
    assert (computation.rows_asked, computation.windows[0].found.tolist()) == (["r0", "r2", "r3"], [])


def test_rows_that_are_all_known_are_read_in_their_order(tmp_path: Path) -> None:
    earlier = Computation(tmp_path, ROWS)
    earlier.rows(0, 4)
    turned = dict(reversed(ROWS.items()))
    computation = Computation(tmp_path, turned, earlier.check(ROWS)[0].select(np.array([3, 2, 1, 0])))
    assert computation.rows(0, 4).table.equals(claims_table(turned))
    assert (computation.rows_asked, computation.check(turned)[1]) == ([], StageUsage())


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
    step = make_plan(str(tmp_path)).steps[Stage.VERDICTS]
    claims = StageRows.from_table(Stage.CLAIMS, claims_table(rows), pa.array(list(rows)))
    read = {Stage.SAMPLES: rows_of_samples(samples(rows)), Stage.CLAIMS: claims}
    for expected in (["r0", "r1", "r2"], ["r1"], ["r1"]):
        asked, store, window = Asked(), RowStore(str(tmp_path)), Window(step, Places.nothing(3))
        found = window.compute(store, read, asked.compute(Stage.VERDICTS))
        assert found.table.equals(verdicts_table(rows))
        assert asked.rows[Stage.VERDICTS] == expected
        assert store.read(Stage.VERDICTS, store_windows(store, [window])[0]).equals(verdicts_table(rows))
