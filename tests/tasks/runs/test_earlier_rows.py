"""A rerun takes the results of the earlier run's folder as they are, and leaves nothing behind that others find."""

from functools import partial
from pathlib import Path

import pyarrow as pa

from metric_core.stages import Stage
from tasks.rows.row_store import RowStore
from tasks.runs.earlier_rows import place_earlier_rows
from tasks.runs.finished_run import FinishedRun
from tests.tasks.engine.small_runs import claims_table, make_plan, run_small, samples, verdicts_table
from tests.tasks.reports import folders

STORED = {"a": "one two", "b": "", "c": "three", "d": "four"}


def earlier_run(folder: Path) -> FinishedRun:
    """Return a finished run, whose folder is all that is left of it."""
    tables = {
        Stage.SAMPLES: samples(STORED).to_pylist(),
        Stage.CLAIMS: claims_table(STORED).to_pylist(),
        Stage.VERDICTS: verdicts_table(STORED).to_pylist(),
    }
    return FinishedRun(folders.write_run(folder, {}, tables, {}, {"status": "completed"}))


def test_results_are_those_of_the_folder_in_the_order_of_the_rows(tmp_path: Path) -> None:
    run, store, ids = earlier_run(tmp_path / "run"), RowStore(str(tmp_path)), pa.array(["d", "c", "b", "a"])
    places = place_earlier_rows(run, lambda _, row: row == "c", store, Stage.CLAIMS, ids)
    assert places.missing.tolist() == [False, True, False, False]
    found = store.read(Stage.CLAIMS, places.select(~places.missing))
    assert found.equals(claims_table({row: STORED[row] for row in ("d", "b", "a")}))


def test_a_stage_of_which_all_rows_are_computed_is_not_read(tmp_path: Path) -> None:
    run = earlier_run(tmp_path / "run")
    (run.folder / "stages" / "claims.parquet").unlink()
    store, ids = RowStore(str(tmp_path)), pa.array(list(STORED))
    assert place_earlier_rows(run, lambda *_: True, store, Stage.CLAIMS, ids).missing.all()


def test_a_rerun_computes_only_the_chosen_rows_and_gives_others_nothing(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path / "store"))
    given = partial(place_earlier_rows, earlier_run(tmp_path / "run"), lambda _, row: row in "ad")
    rerun = run_small(plan, {**STORED, "a": "five"}, given=given)
    assert rerun.asked == {Stage.CLAIMS: ["a", "d"], Stage.VERDICTS: ["a", "d"]}
    assert rerun.table(Stage.VERDICTS).equals(verdicts_table({**STORED, "a": "five"}).combine_chunks())
    # What was taken from the folder may have been made by another judge.
    assert run_small(plan, STORED).asked == {Stage.CLAIMS: ["a", "c"], Stage.VERDICTS: ["a", "c"]}
