"""Windows: equal tables whatever their size, the order in which they are computed, and errors."""

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from threading import Event, Lock

import pyarrow as pa
import pytest

from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.runtime.cancellation import cancellable
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables
from tasks.tables.table_store import StageRef, TableStore
from tasks.windows.schedule import Schedule, ShardWindows, StoppedError, open_schedule
from tests.tasks.builders import samples_table

ROWS = 20
JUDGED = (Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS)


class Log:
    """The windows that stages have computed, by the first row of each, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[Stage, str]] = []
        self._lock = Lock()

    def stage(self, stage: Stage, *reads: Stage) -> Callable[[Tables], StageOutput]:
        """Return the function of a stage that writes two rows per sample, in an order that depends on the window."""

        def compute(tables: Tables) -> StageOutput:
            ids = tables[Stage.SAMPLES]["row_id"].to_pylist()
            for earlier in reads:
                assert sorted(set(tables[earlier]["row_id"].to_pylist())) == sorted(ids)
            with self._lock:
                self.entries.append((stage, ids[0]))
            texts = [f"{stage} {row_id} {part}" for part in "ab" for row_id in ids]
            return StageOutput(pa.table({"row_id": [*ids, *ids], "text": texts}), StageUsage(questions=len(texts)))

        return compute


@pytest.fixture
def schedule() -> Iterator[Schedule]:
    with open_schedule(at_once=3) as schedule:
        yield schedule


@pytest.fixture
def samples(tmp_path: Path) -> StageRef:
    rows = [{"row_id": f"r{number:02}", "user_input": "Why?"} for number in range(ROWS)]
    return TableStore(str(tmp_path)).write(samples_table(*rows), SAMPLES)


def run_stages(shard: ShardWindows, log: Log) -> dict[Stage, StageOutput]:
    """Compute three judged stages, of which one reads another, each in its thread as a task does."""
    reads = dict.fromkeys(JUDGED, (Stage.SAMPLES,)) | {Stage.VERDICTS: (Stage.SAMPLES, Stage.CLAIMS)}
    with ThreadPoolExecutor() as threads:
        futures = {
            stage: threads.submit(
                copy_context().run,
                lambda stage=stage: shard.compute(
                    stage, reads[stage], log.stage(stage, *reads[stage][1:]), is_judged=True
                ),
            )
            for stage in reversed(JUDGED)
        }
        return {stage: future.result() for stage, future in futures.items()}


@pytest.mark.parametrize("rows", [1, 3, 7, 20, 100])
def test_tables_and_counts_do_not_depend_on_the_size_of_windows(
    schedule: Schedule, samples: StageRef, rows: int
) -> None:
    output = run_stages(schedule.open_shard(samples, {}, JUDGED, rows), Log())
    ids = [f"r{number:02}" for number in range(ROWS)]
    for stage in JUDGED:
        assert output[stage].table["text"].to_pylist() == [
            f"{stage} {row_id} {part}" for row_id in ids for part in "ab"
        ]
        assert output[stage].usage.questions == 2 * ROWS


def test_no_stage_is_far_ahead_of_another(samples: StageRef) -> None:
    log = Log()
    with open_schedule(at_once=8) as schedule:
        run_stages(schedule.open_shard(samples, {}, JUDGED, 1), log)
    done = dict.fromkeys(JUDGED, 0)
    for stage, _ in log.entries:
        done[stage] += 1
        # A window counts as done when it ends, so those that are being computed come on top.
        assert max(done.values()) - min(done.values()) <= 4 + 1
    assert set(done.values()) == {ROWS}


def test_stage_that_ended_does_not_hold_others_back(schedule: Schedule, samples: StageRef) -> None:
    shard = schedule.open_shard(samples, {}, JUDGED, 1)
    shard.leave(Stage.RATINGS)
    shard.leave(Stage.VERDICTS)
    log = Log()
    shard.compute(Stage.CLAIMS, (Stage.SAMPLES,), log.stage(Stage.CLAIMS), is_judged=True)
    assert [row_id for _, row_id in sorted(log.entries)] == [f"r{number:02}" for number in range(ROWS)]


def test_retried_stage_computes_only_the_windows_that_it_lacks(schedule: Schedule, samples: StageRef) -> None:
    shard, log, refused = schedule.open_shard(samples, {}, (Stage.CLAIMS,), 5), Log(), ["r10"]
    compute = log.stage(Stage.CLAIMS)

    def unsteady(tables: Tables) -> StageOutput:
        if tables[Stage.SAMPLES]["row_id"][0].as_py() in refused:
            refused.clear()
            raise ConnectionError("the server is away")
        return compute(tables)

    with pytest.raises(ConnectionError, match="away"):
        shard.compute(Stage.CLAIMS, (Stage.SAMPLES,), unsteady, is_judged=True)
    output = shard.compute(Stage.CLAIMS, (Stage.SAMPLES,), unsteady, is_judged=True)
    assert output.table.num_rows == output.usage.questions == 2 * ROWS
    assert sorted(row_id for _, row_id in log.entries) == ["r00", "r05", "r10", "r15"]


def test_stages_that_wait_end_when_the_run_ends(schedule: Schedule, samples: StageRef) -> None:
    shard = schedule.open_shard(samples, {}, JUDGED, 5)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(
            shard.compute, Stage.VERDICTS, (Stage.SAMPLES, Stage.CLAIMS), Log().stage(Stage.VERDICTS), is_judged=True
        )
        schedule.close()
        with pytest.raises(StoppedError):
            waiting.result()


def test_stages_that_wait_end_when_the_run_is_cancelled(schedule: Schedule, samples: StageRef) -> None:
    shard, started = schedule.open_shard(samples, {}, JUDGED, 5), Event()

    def wait() -> None:
        started.set()
        shard.compute(Stage.VERDICTS, (Stage.SAMPLES, Stage.CLAIMS), Log().stage(Stage.VERDICTS), is_judged=True)

    with ThreadPoolExecutor() as threads, cancellable() as cancellation:
        waiting = threads.submit(copy_context().run, wait)
        started.wait()
        cancellation.cancel()
        with pytest.raises(CancelledError):
            waiting.result()


def test_stage_without_questions_computes_many_rows_at_once(schedule: Schedule, samples: StageRef) -> None:
    log = Log()
    shard = schedule.open_shard(samples, {}, (), 3)
    output = shard.compute(Stage.ENTITIES, (Stage.SAMPLES,), log.stage(Stage.ENTITIES), is_judged=False)
    assert [row_id for _, row_id in log.entries] == ["r00"]
    assert output.table.num_rows == 2 * ROWS
