"""Compute the windows of stages in a few threads, in the order of the rows, and pass them on to other stages.

The questions of a judged stage about a row are asked soon after those of the others, so that a judge server finds the
passages of the row in its prefix cache: no judged stage may start a window that is many windows ahead of the slowest
one. Across shards the windows are numbered through, so that the last windows of a shard overlap with the first of the
next one.
"""

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import replace
from threading import Condition
from time import monotonic

from metric_core.errors import AssayError
from metric_core.stages import Stage
from tasks.engine.computation import Compute, StageComputation, StageResult, read_rows
from tasks.engine.stage_rows import StageRows
from tasks.engine.stage_step import StageStep
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_store import RowStore
from tasks.runtime.cancellation import current_cancellation
from tasks.runtime.threads import WorkerThreads
from tasks.runtime.usage import StageUsage

AHEAD = 4
"""Windows by which a judged stage may be ahead of the slowest: with 25 rows of 4,000 prompt tokens each, as many tokens
as the prefix cache of a small server holds."""

ROWS_OF_A_BLOCK = 50
"""Rows that a stage without questions computes at once: enough for a local model to form batches of like length, few
enough that little is left to compute when the last question is answered."""


class StoppedError(AssayError):
    """A stage is not computed, because another stage has failed or the run has ended."""


class Schedule:
    """The windows that are computed and that wait for it. Used by the threads of all stages.

    Its threads are started with it, so that a limit of threads is met before anything is computed.

    Args:
        at_once: Number of windows that are computed at the same time; fewer if not so many threads can be started.
        ahead: Number of windows by which a judged stage may be ahead of the slowest one.

    Raises:
        ThreadLimitError: No thread can be started.
    """

    def __init__(self, at_once: int, ahead: int = AHEAD) -> None:
        self._threads = WorkerThreads("window", at_once)
        self._at_once = self._threads.count
        self._unjudged_at_once = max(1, self._at_once // 4)  # local models must not keep questions from the judge
        self._ahead = ahead
        self._changed = Condition()
        self._shards: list[ShardWindows] = []
        self._next_window = 0
        self._running = 0
        self._running_unjudged = 0
        self._is_closed = False
        self._error: BaseException | None = None

    def open_shard(
        self, samples: StageRows, known: Mapping[Stage, PlacedRows], store: RowStore, judged: Sequence[Stage], rows: int
    ) -> "ShardWindows":
        """Return the windows of a shard, whose judged stages count from now on.

        Args:
            known: Places of the results that are known before, by stage; -1 for the others.
            judged: Judged stages that are going to be computed.
            rows: Number of rows per window.
        """
        shard = ShardWindows(self, samples, known, store, judged, rows)
        with self._changed:
            shard.first = self._next_window
            self._next_window += shard.windows
            self._shards.append(shard)
        return shard

    def close_shard(self, shard: "ShardWindows") -> None:
        """Forget a shard whose stages have ended, and free its results."""
        with self._changed:
            self._shards.remove(shard)
            shard.free()
            self._changed.notify_all()

    def close(self) -> None:
        """Start no more windows; stages that wait for some end with an error."""
        with self._changed:
            self._is_closed = True
            self._threads.close()
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the windows that are being computed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running)

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Wait until a condition holds that changes with the windows.

        Raises:
            CancelledError: The run is cancelled.
            StoppedError: The schedule is closed.
            BaseException: The state of the windows is lost, so that none is started any more.
        """
        cancellation = current_cancellation()
        with cancellation.on_cancel(self._wake), self._changed:
            while not is_done():
                cancellation.check()
                if self._error is not None:
                    raise self._error
                if self._is_closed:
                    raise StoppedError("not computed: another stage has failed, or the run has ended")
                self._changed.wait()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Change what others wait for, in the block."""
        with self._changed:
            try:
                yield
                self._start_windows()
            except BaseException as error:
                self._error = self._error or error
                raise
            finally:
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _start_windows(self) -> None:
        """Start what is ready, the earliest rows first, in as many threads as are free."""
        while self._running < self._at_once and not self._is_closed:
            limit = self._slowest() + self._ahead
            ready = [
                (work.shard.first + work.windows_of(block).start, work.rank, number, work, block)
                for number, work in enumerate(self._works())
                if (block := work.ready_block(limit)) is not None
                and (work.is_judged or self._running_unjudged < self._unjudged_at_once)
            ]
            if not ready:
                return
            *_, work, block = min(ready, key=lambda each: each[:3])
            work.begin(block)
            self._running += 1
            self._running_unjudged += not work.is_judged
            self._threads.submit(self._compute, work, block)

    def _works(self) -> Iterator["StageWork"]:
        return (work for shard in self._shards for work in shard.works.values())

    def _slowest(self) -> int:
        """Return the first window that a judged stage has yet to compute."""
        return min((shard.first + shard.slowest for shard in self._shards if shard.judged), default=self._next_window)

    def _compute(self, work: "StageWork", block: int) -> None:
        """Compute a window. Those who wait raise its errors: nobody else would hear of them."""
        output: StageRows | BaseException
        try:
            output = work.context.copy().run(work.rows_of, block)
        except BaseException as error:  # noqa: BLE001 the stage raises it
            output = error
        with suppress(BaseException), self.change():
            self._running -= 1
            self._running_unjudged -= not work.is_judged
            work.end(block, output)


@contextmanager
def open_schedule(at_once: int) -> Iterator[Schedule]:
    """Yield a schedule that is closed at the end of the block.

    What is being computed then is awaited, because the next run can use its answers, unless the block is interrupted.

    Args:
        at_once: Number of windows that are computed at the same time.
    """
    schedule = Schedule(at_once)
    try:
        yield schedule
    except Exception:
        schedule.close()
        schedule.join()
        raise
    finally:
        schedule.close()


class ShardWindows:
    """The results of a shard, window by window as they are computed.

    Args:
        known: Places of the results that are known before, by stage; -1 for the others.
        judged: Judged stages that are going to be computed.
        rows: Number of rows per window.
    """

    def __init__(  # noqa: PLR0913, PLR0917 made by the schedule alone
        self,
        schedule: Schedule,
        samples: StageRows,
        known: Mapping[Stage, PlacedRows],
        store: RowStore,
        judged: Sequence[Stage],
        rows: int,
    ) -> None:
        self.schedule = schedule
        self.first = 0
        self.rows = rows
        self.count = len(samples)
        self.windows = max(1, -(-self.count // rows))
        self.judged = dict.fromkeys(judged, 0)
        self.works: dict[Stage, StageWork] = {}
        self.parts: dict[Stage, list[StageRows | None]] = {Stage.SAMPLES: [*self.cut(samples, range(self.windows))]}
        self._row_ids = samples.table["row_id"].combine_chunks()
        self._known = known
        self._store = store

    @property
    def tables(self) -> str:
        """Path or URL of the table store."""
        return self._store.url

    @property
    def slowest(self) -> int:
        """The first window that a judged stage has yet to compute."""
        return min(self.judged.values())

    def compute(self, step: StageStep, compute: Compute) -> StageResult:
        """Compute a stage, window by window as the results that it reads are computed, and store its results.

        Windows that an earlier call has computed, before it failed, are not computed again.

        Args:
            compute: Computes the rows of the stage's table, in other threads, with the context of this one.

        Raises:
            CancelledError: The run is cancelled.
            StoppedError: Another stage has failed, or the run has ended.
            BaseException: Whatever `compute` raises first.
        """
        for earlier in step.reads:
            self._load(earlier)
        with self.schedule.change():
            work = self.works.get(step.stage)
            if work is None:
                known = self._known.get(step.stage) or PlacedRows.nothing(self.count)
                rows = StageComputation(step, self._store, known, self._row_ids)
                work = self.works[step.stage] = StageWork(self, step, rows)
            work.restart(compute, copy_context())
            self.parts.setdefault(step.stage, [None] * self.windows)
        try:
            self.schedule.wait(lambda: work.is_done)
        except (StoppedError, CancelledError):
            work.stop()
            raise
        if work.error is not None:
            raise work.error
        return work.result()

    def leave(self, stage: Stage) -> None:
        """No longer wait for a stage, which has ended or failed, before others go on."""
        with self.schedule.change():
            self.judged.pop(stage, None)

    def free(self) -> None:
        """Forget the results, which refer to each other and would wait for the garbage collector."""
        self.works.clear()
        self.parts.clear()

    def cut(self, rows: StageRows, windows: range) -> list[StageRows]:
        """Return the parts of results that belong to windows, which all their samples belong to."""
        first = windows.start * self.rows
        ends = [min(self.count, (window + 1) * self.rows) - first for window in windows]
        return [rows.cut(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def _load(self, stage: Stage) -> None:
        """Read the results of a stage that are all known, unless they are being computed."""
        known = self._known.get(stage)
        if stage in self.parts or known is None or known.missing.any():
            return
        parts = self.cut(read_rows(self._store, stage, known), range(self.windows))
        with self.schedule.change():
            self.parts.setdefault(stage, [*parts])


class StageWork:
    """The computation of a stage for one shard. Its methods are called with the lock of the schedule held."""

    def __init__(self, shard: ShardWindows, step: StageStep, rows: StageComputation) -> None:
        self.shard = shard
        self.stage = step.stage
        self.rank = list(Stage).index(step.stage)
        self.is_judged = step.is_judged
        self.error: BaseException | None = None
        self.context: Context = copy_context()
        self.compute: Compute
        self._rows = rows
        self._reads = step.reads
        self._windows = shard.windows
        self._width = 1 if step.is_judged else max(1, ROWS_OF_A_BLOCK // shard.rows)
        self._waiting = list(range(-(-self._windows // self._width)))
        self._done: set[int] = set()
        self._running = 0
        self._started = 0.0
        self._seconds = 0.0

    @property
    def is_done(self) -> bool:
        """Whether all windows are computed, or one has failed and none is being computed."""
        return not self._running and (self.error is not None or not self._waiting)

    def restart(self, compute: Compute, context: Context) -> None:
        """Compute the windows that are missing."""
        self.compute, self.context, self.error = compute, context, None
        self._waiting = [block for block in range(-(-self._windows // self._width)) if block not in self._done]

    def stop(self) -> None:
        """Start no more windows."""
        self._waiting = []

    def windows_of(self, block: int) -> range:
        """Return the windows that are computed together as a block."""
        return range(block * self._width, min((block + 1) * self._width, self._windows))

    def ready_block(self, limit: int) -> int | None:
        """Return the next block, if its inputs are there and a judged stage may start it.

        Args:
            limit: First window, counted over all shards, that a judged stage may not start.
        """
        if not self._waiting or self.error is not None:
            return None
        block = self._waiting[0]
        windows = self.windows_of(block)
        if self.is_judged and self.shard.first + windows.start >= limit:
            return None
        parts = self.shard.parts
        is_ready = all(stage in parts and all(parts[stage][w] is not None for w in windows) for stage in self._reads)
        return block if is_ready else None

    def rows_of(self, block: int) -> StageRows:
        """Return the results of a block. Called without the lock."""
        windows, parts = self.windows_of(block), self.shard.parts
        read = {stage: [part for w in windows if (part := parts[stage][w]) is not None] for stage in self._reads}
        inputs = {stage: StageRows.concat(found) for stage, found in read.items()}
        return self._rows.rows(windows.start * self.shard.rows, inputs, self.compute)

    def begin(self, block: int) -> None:
        """Note that a block is being computed."""
        self._waiting.remove(block)
        if not self._running:
            self._started = monotonic()
        self._running += 1

    def end(self, block: int, output: StageRows | BaseException) -> None:
        """Note the results of a block, or its error."""
        self._running -= 1
        if not self._running:
            self._seconds += monotonic() - self._started
        if isinstance(output, BaseException):
            self.error = self.error or output
            return
        windows = self.windows_of(block)
        self._done.add(block)
        self.shard.parts[self.stage][slice(windows.start, windows.stop)] = self.shard.cut(output, windows)
        if self.stage in self.shard.judged:
            missing = (number for number, part in enumerate(self.shard.parts[self.stage]) if part is None)
            self.shard.judged[self.stage] = next(missing, self._windows)
        if len(self._done) * self._width >= self._windows:
            self.shard.judged.pop(self.stage, None)

    def result(self) -> StageResult:
        """Store the results that were computed, and return the places of all. Called without the lock."""
        result = self._rows.store()
        return replace(result, usage=result.usage + StageUsage(seconds=self._seconds))
