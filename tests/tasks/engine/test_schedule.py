"""Windows: equal tables whatever their size, the order in which they are computed, and errors."""

import gc
import weakref
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from threading import Event, Lock, Thread

import pytest

from metric_core.stages import Stage
from tasks.engine.computation import Compute, StageResult
from tasks.engine.schedule import Schedule, ShardWindows, StageWork, StoppedError, open_schedule
from tasks.engine.stage_step import StageStep
from tasks.options.settings import Settings
from tasks.rows.row_store import RowStore
from tasks.runtime.cancellation import cancellable
from tasks.runtime.threads import ThreadLimitError
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables
from tasks.tables.records import build_table
from tests.tasks.engine.small_runs import rows_of_samples, samples

ROWS = 20
IDS = [f"r{number:02}" for number in range(ROWS)]
JUDGED = (Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS)
STEPS = {
    stage: StageStep(stage, Settings(), reads, "one way")
    for stage, reads in {
        Stage.CLAIMS: (Stage.SAMPLES,),
        Stage.ENTITIES: (Stage.SAMPLES,),
        Stage.RATINGS: (Stage.SAMPLES,),
        Stage.VERDICTS: (Stage.SAMPLES, Stage.CLAIMS),
    }.items()
}


class Log:
    """The windows that stages have computed, by the first row of each, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[Stage, str]] = []
        self._lock = Lock()

    def stage(self, stage: Stage) -> Compute:
        """Return the function of a stage that writes two rows per sample, in an order that depends on the window."""

        def compute(tables: Tables) -> StageOutput:
            ids = tables[Stage.SAMPLES]["row_id"].to_pylist()
            for earlier in STEPS[stage].reads:
                assert sorted(set(tables[earlier]["row_id"].to_pylist())) == sorted(ids)
            with self._lock:
                self.entries.append((stage, ids[0]))
            texts = ("side", "kind", "premise", "metric", "template")
            others = {**dict.fromkeys(texts, ""), "vote": 0, "status": "answered"}
            rows = [
                {"row_id": row_id, "claim_id": part, "reason": f"{stage} {row_id} {part}", **others}
                for part in "ab"
                for row_id in ids
            ]
            return StageOutput(build_table(stage, rows), StageUsage(questions=len(rows)))

        return compute


class Shard:
    """The windows of a shard of twenty rows.

    Args:
        schedule: Schedule of the windows.
        store: Row store.
        judged: Judged stages that are going to be computed.
        rows: Number of rows per window.
    """

    def __init__(self, schedule: Schedule, store: RowStore, judged: Sequence[Stage], rows: int) -> None:
        self._store = store
        read = rows_of_samples(samples(dict.fromkeys(IDS, "Because.")))
        self.windows: ShardWindows = schedule.open_shard(read, {}, store, judged, rows)

    def compute(self, stage: Stage, compute: Compute) -> StageResult:
        """Compute a stage."""
        return self.windows.compute(STEPS[stage], compute)

    def compute_judged(self, log: Log) -> dict[Stage, StageResult]:
        """Compute three judged stages, of which one reads another, each in its thread as a task does."""
        with ThreadPoolExecutor() as threads:
            futures = {
                stage: threads.submit(copy_context().run, self.compute, stage, log.stage(stage))
                for stage in reversed(JUDGED)
            }
            return {stage: future.result() for stage, future in futures.items()}

    def reasons(self, stage: Stage, result: StageResult) -> list[str]:
        """Return what the stage wrote in each row of its table."""
        found: list[str] = self._store.read(stage, result.placed)["reason"].to_pylist()
        return found


@pytest.fixture
def schedule() -> Iterator[Schedule]:
    with open_schedule(at_once=3) as schedule:
        yield schedule


@pytest.fixture
def store(tmp_path: Path) -> RowStore:
    return RowStore(str(tmp_path))


@pytest.mark.parametrize("rows", [1, 3, 7, 20, 100])
def test_tables_and_counts_do_not_depend_on_the_size_of_windows(schedule: Schedule, store: RowStore, rows: int) -> None:
    shard = Shard(schedule, store, JUDGED, rows)
    results = shard.compute_judged(Log())
    for stage in JUDGED:
        assert shard.reasons(stage, results[stage]) == [f"{stage} {row_id} {part}" for row_id in IDS for part in "ab"]
        assert (results[stage].usage.questions, results[stage].computed) == (2 * ROWS, ROWS)


def test_no_stage_is_far_ahead_of_another(store: RowStore) -> None:
    log = Log()
    with open_schedule(at_once=8) as schedule:
        Shard(schedule, store, JUDGED, 1).compute_judged(log)
    done = dict.fromkeys(JUDGED, 0)
    for stage, _ in log.entries:
        done[stage] += 1
        # A window counts as done when it ends, so those that are being computed come on top.
        assert max(done.values()) - min(done.values()) <= 4 + 1
    assert set(done.values()) == {ROWS}


def test_stage_that_ended_does_not_hold_others_back(schedule: Schedule, store: RowStore) -> None:
    shard = Shard(schedule, store, JUDGED, 1)
    shard.windows.leave(Stage.RATINGS)
    shard.windows.leave(Stage.VERDICTS)
    log = Log()
    shard.compute(Stage.CLAIMS, log.stage(Stage.CLAIMS))
    assert [row_id for _, row_id in sorted(log.entries)] == IDS


def test_retried_stage_computes_only_the_windows_that_it_lacks(schedule: Schedule, store: RowStore) -> None:
    shard, log, refused = Shard(schedule, store, (Stage.CLAIMS,), 5), Log(), ["r10"]
    compute = log.stage(Stage.CLAIMS)

    def unsteady(tables: Tables) -> StageOutput:
        if tables[Stage.SAMPLES]["row_id"][0].as_py() in refused:
            refused.clear()
            raise ConnectionError("the server is away")
        return compute(tables)

    with pytest.raises(ConnectionError, match="away"):
        shard.compute(Stage.CLAIMS, unsteady)
    result = shard.compute(Stage.CLAIMS, unsteady)
    assert len(shard.reasons(Stage.CLAIMS, result)) == result.usage.questions == 2 * ROWS
    assert sorted(row_id for _, row_id in log.entries) == ["r00", "r05", "r10", "r15"]


def test_stages_that_wait_end_when_the_run_ends(schedule: Schedule, store: RowStore) -> None:
    shard = Shard(schedule, store, JUDGED, 5)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(shard.compute, Stage.VERDICTS, Log().stage(Stage.VERDICTS))
        schedule.close()
        with pytest.raises(StoppedError):
            waiting.result()


def test_stages_that_wait_end_when_the_run_is_cancelled(schedule: Schedule, store: RowStore) -> None:
    shard, started = Shard(schedule, store, JUDGED, 5), Event()

    def wait() -> None:
        started.set()
        shard.compute(Stage.VERDICTS, Log().stage(Stage.VERDICTS))

    with ThreadPoolExecutor() as threads, cancellable() as cancellation:
        waiting = threads.submit(copy_context().run, wait)
        started.wait()
        cancellation.cancel()
        with pytest.raises(CancelledError):
            waiting.result()


def test_stage_without_questions_computes_many_rows_at_once(schedule: Schedule, store: RowStore) -> None:
    log = Log()
    shard = Shard(schedule, store, (), 3)
    result = shard.compute(Stage.ENTITIES, log.stage(Stage.ENTITIES))
    assert [row_id for _, row_id in log.entries] == ["r00"]
    assert len(shard.reasons(Stage.ENTITIES, result)) == 2 * ROWS


def test_a_stage_whose_results_are_known_is_not_computed(schedule: Schedule, store: RowStore) -> None:
    first = Shard(schedule, store, (Stage.CLAIMS,), 5)
    known = {Stage.CLAIMS: first.compute(Stage.CLAIMS, Log().stage(Stage.CLAIMS)).placed}
    read = rows_of_samples(samples(dict.fromkeys(IDS, "Because.")))
    windows, log = schedule.open_shard(read, known, store, (Stage.VERDICTS,), 5), Log()
    result = windows.compute(STEPS[Stage.VERDICTS], log.stage(Stage.VERDICTS))
    assert sorted(row_id for _, row_id in log.entries) == ["r00", "r05", "r10", "r15"]
    assert result.computed == ROWS


def test_rows_of_a_closed_shard_leave_memory(store: RowStore) -> None:
    with open_schedule(at_once=3) as schedule:
        shard = Shard(schedule, store, JUDGED, 5)
        shard.compute_judged(Log())
        windows = weakref.ref(shard.windows)
        schedule.close_shard(shard.windows)
        del shard
        gc.collect()
        assert windows() is None


def allow_threads(monkeypatch: pytest.MonkeyPatch, count: int, name: str = "window") -> None:
    """Let no more than a number of threads with a name start, as in a container with a limit of processes."""
    start = Thread.start
    started: list[Thread] = []

    def start_if_allowed(self: Thread) -> None:
        if self.name.startswith(name):
            if len(started) == count:
                raise RuntimeError("can't start new thread")
            started.append(self)
        start(self)

    monkeypatch.setattr(Thread, "start", start_if_allowed)


def test_windows_are_computed_in_the_threads_that_there_are(
    store: RowStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    allow_threads(monkeypatch, 2)
    with open_schedule(at_once=8) as schedule:
        results = Shard(schedule, store, JUDGED, 3).compute_judged(Log())
    assert [results[stage].computed for stage in JUDGED] == [ROWS] * 3
    (message,) = caplog.messages
    assert message.startswith(
        "2 threads compute at the same time instead of 8: the thread 'window-2' cannot be started"
    )


def test_a_schedule_without_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_threads(monkeypatch, 0)
    with pytest.raises(ThreadLimitError, match=r"can't start new thread.*`ulimit -u`"), open_schedule(at_once=8):
        pass


def test_no_thread_is_started_later(store: RowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_schedule(at_once=2) as schedule:
        allow_threads(monkeypatch, 0, "")
        result = Shard(schedule, store, (), 3).compute(Stage.ENTITIES, Log().stage(Stage.ENTITIES))
    assert result.computed == ROWS


@pytest.mark.parametrize("place", ["begin", "end", "ready_block", "rows_of", "windows_of"])
def test_an_error_of_the_bookkeeping_reaches_the_stage(
    store: RowStore, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    real, calls = getattr(StageWork, place), []

    def fail_later(self: StageWork, *arguments: object) -> object:
        calls.append(arguments)
        if len(calls) > 4:
            raise MemoryError("out of memory")
        return real(self, *arguments)

    monkeypatch.setattr(StageWork, place, fail_later)
    with open_schedule(at_once=3) as schedule:
        shard = Shard(schedule, store, (Stage.CLAIMS,), 1)
        with pytest.raises(MemoryError, match="out of memory"):
            shard.compute(Stage.CLAIMS, Log().stage(Stage.CLAIMS))
