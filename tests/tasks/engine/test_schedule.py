"""Windows: equal tables whatever their size, the order in which they are computed, and errors."""

import gc
import weakref
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from threading import Event, Lock, Thread

import numpy as np
import pytest

from metric_core.stages import Stage
from tasks.engine.computation import Compute
from tasks.engine.lookup import read_known
from tasks.engine.schedule import Schedule, StageWindows, StoppedError, open_schedule
from tasks.engine.stage_step import EnginePlan, StageStep
from tasks.options.settings import Settings
from tasks.rows.places import Places
from tasks.rows.records import build_table
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.table_store import TableStore
from tasks.runtime.cancellation import cancellable
from tasks.runtime.threads import ThreadLimitError
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables
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


class Opened:
    """The windows of a shard of twenty rows.

    Args:
        schedule: Schedule of the windows.
        stages: Stages that are going to be computed.
        places: Places of the results of other stages.
    """

    def __init__(
        self, schedule: Schedule, stages: Sequence[Stage], places: Mapping[Stage, Places] | None = None
    ) -> None:
        self.schedule = schedule
        table = samples(dict.fromkeys(IDS, "Because."))
        digests = rows_of_samples(table).digests
        stored = TableStore(schedule.store.url).write(table)
        placed = dict(places or {}) | {stage: Places.nothing(ROWS) for stage in stages}
        self.shard = Shard(0, (stored,), ((0, np.arange(ROWS)),), digests, placed)
        (known,) = read_known(schedule.plan, schedule.store, [self.shard])
        self.windows = {windows.step.stage: windows for windows in schedule.open_shard(self.shard, known)}

    def compute(self, stage: Stage, compute: Compute) -> None:
        """Compute a stage."""
        self.windows[stage].compute(compute)

    def compute_judged(self, log: Log) -> None:
        """Compute three judged stages, of which one reads another, each in its thread as a task does."""
        with ThreadPoolExecutor() as threads:
            futures = [
                threads.submit(copy_context().run, self.compute, stage, log.stage(stage)) for stage in reversed(JUDGED)
            ]
            for future in futures:
                future.result()

    def reasons(self, stage: Stage) -> list[str]:
        """Return what the stage wrote in each row of its table."""
        found: list[str] = self.schedule.store.read(stage, self.shard.places[stage])["reason"].to_pylist()
        return found


def plan_windows(store: RowStore, rows: int = 5) -> EnginePlan:
    """Return the plan of a run with a number of rows per window."""
    return EnginePlan(STEPS, store.url, rows, ROWS)


@pytest.fixture
def store(tmp_path: Path) -> RowStore:
    return RowStore(str(tmp_path))


@pytest.fixture
def schedule(store: RowStore) -> Iterator[Schedule]:
    with open_schedule(plan_windows(store), store, at_once=3) as schedule:
        yield schedule


@pytest.mark.parametrize("rows", [1, 3, 7, 20, 100])
def test_tables_and_counts_do_not_depend_on_the_size_of_windows(store: RowStore, rows: int) -> None:
    with open_schedule(plan_windows(store, rows), store, at_once=3) as schedule:
        opened = Opened(schedule, JUDGED)
        opened.compute_judged(Log())
    for stage in JUDGED:
        assert opened.reasons(stage) == [f"{stage} {row_id} {part}" for row_id in IDS for part in "ab"]
        assert opened.shard.usages[stage].questions == 2 * ROWS


def test_no_stage_is_far_ahead_of_another(store: RowStore) -> None:
    log = Log()
    with open_schedule(plan_windows(store, 1), store, at_once=8) as schedule:
        Opened(schedule, JUDGED).compute_judged(log)
    done = dict.fromkeys(JUDGED, 0)
    for stage, _ in log.entries:
        done[stage] += 1
        # A window counts as done when it ends, so those that are being computed come on top.
        assert max(done.values()) - min(done.values()) <= 4 + 1
    assert set(done.values()) == {ROWS}


def test_stage_that_ended_does_not_hold_others_back(store: RowStore) -> None:
    log = Log()
    with open_schedule(plan_windows(store, 1), store, at_once=3) as schedule:
        opened = Opened(schedule, JUDGED)
        opened.windows[Stage.RATINGS].leave()
        opened.windows[Stage.VERDICTS].leave()
        opened.compute(Stage.CLAIMS, log.stage(Stage.CLAIMS))
    assert [row_id for _, row_id in sorted(log.entries)] == IDS


def test_retried_stage_computes_only_the_windows_that_it_lacks(schedule: Schedule) -> None:
    opened, log, refused = Opened(schedule, [Stage.CLAIMS]), Log(), ["r10"]
    compute = log.stage(Stage.CLAIMS)

    def unsteady(tables: Tables) -> StageOutput:
        if tables[Stage.SAMPLES]["row_id"][0].as_py() in refused:
            refused.clear()
            raise ConnectionError("the server is away")
        return compute(tables)

    with pytest.raises(ConnectionError, match="away"):
        opened.compute(Stage.CLAIMS, unsteady)
    opened.compute(Stage.CLAIMS, unsteady)
    assert len(opened.reasons(Stage.CLAIMS)) == opened.shard.usages[Stage.CLAIMS].questions == 2 * ROWS
    assert sorted(row_id for _, row_id in log.entries) == ["r00", "r05", "r10", "r15"]


def test_stages_that_wait_end_when_the_run_ends(schedule: Schedule) -> None:
    opened = Opened(schedule, JUDGED)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(opened.compute, Stage.VERDICTS, Log().stage(Stage.VERDICTS))
        schedule.close()
        with pytest.raises(StoppedError):
            waiting.result()


def test_stages_that_wait_end_when_the_run_is_cancelled(schedule: Schedule) -> None:
    opened, started = Opened(schedule, JUDGED), Event()

    def wait() -> None:
        started.set()
        opened.compute(Stage.VERDICTS, Log().stage(Stage.VERDICTS))

    with ThreadPoolExecutor() as threads, cancellable() as cancellation:
        waiting = threads.submit(copy_context().run, wait)
        started.wait()
        cancellation.cancel()
        with pytest.raises(CancelledError):
            waiting.result()


def test_stage_without_questions_computes_many_rows_at_once(schedule: Schedule) -> None:
    log = Log()
    opened = Opened(schedule, [Stage.ENTITIES])
    opened.compute(Stage.ENTITIES, log.stage(Stage.ENTITIES))
    assert [row_id for _, row_id in log.entries] == ["r00"]
    assert len(opened.reasons(Stage.ENTITIES)) == 2 * ROWS


def test_a_stage_whose_results_are_known_is_not_computed(schedule: Schedule) -> None:
    first = Opened(schedule, [Stage.CLAIMS])
    first.compute(Stage.CLAIMS, Log().stage(Stage.CLAIMS))
    opened, log = Opened(schedule, [Stage.VERDICTS], {Stage.CLAIMS: first.shard.places[Stage.CLAIMS]}), Log()
    assert list(opened.windows) == [Stage.VERDICTS]
    opened.compute(Stage.VERDICTS, log.stage(Stage.VERDICTS))
    assert sorted(row_id for _, row_id in log.entries) == ["r00", "r05", "r10", "r15"]
    assert not opened.shard.missing


def test_rows_of_a_closed_shard_leave_memory(schedule: Schedule) -> None:
    opened, references = Opened(schedule, JUDGED), []

    def compute(tables: Tables) -> StageOutput:
        references.append(weakref.ref(tables[Stage.SAMPLES]))
        return Log().stage(Stage.CLAIMS)(tables)

    opened.compute(Stage.CLAIMS, compute)
    schedule.close_shard(list(opened.windows.values()))
    gc.collect()
    assert [reference() for reference in references] == [None] * 4


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
    with open_schedule(plan_windows(store), store, at_once=8) as schedule:
        opened = Opened(schedule, JUDGED)
        opened.compute_judged(Log())
    assert not opened.shard.missing
    (message,) = caplog.messages
    assert message.startswith(
        "2 threads compute at the same time instead of 8: the thread 'window-2' cannot be started"
    )


def test_a_schedule_without_threads_is_refused(store: RowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_threads(monkeypatch, 0)
    with pytest.raises(ThreadLimitError, match=r"can't start new thread.*`ulimit -u`"):
        Schedule(plan_windows(store), store, at_once=8)


def test_no_thread_is_started_later(store: RowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_schedule(plan_windows(store), store, at_once=2) as schedule:
        opened = Opened(schedule, [Stage.ENTITIES])
        allow_threads(monkeypatch, 0, "")
        opened.compute(Stage.ENTITIES, Log().stage(Stage.ENTITIES))
    assert not opened.shard.missing


@pytest.mark.parametrize("place", ["begin", "end", "ready_block", "compute_block", "windows_of"])
def test_an_error_of_the_bookkeeping_reaches_the_stage(
    store: RowStore, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    real, calls = getattr(StageWindows, place), []

    def fail_later(self: StageWindows, *arguments: object) -> object:
        calls.append(arguments)
        if len(calls) > 4:
            raise MemoryError("out of memory")
        return real(self, *arguments)

    monkeypatch.setattr(StageWindows, place, fail_later)
    with open_schedule(plan_windows(store, 1), store, at_once=3) as schedule:
        opened = Opened(schedule, [Stage.CLAIMS])
        with pytest.raises(MemoryError, match="out of memory"):
            opened.compute(Stage.CLAIMS, Log().stage(Stage.CLAIMS))
