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
from threading import Condition
from time import monotonic
from typing import TypeAlias

from metric_core.errors import AssayError
from metric_core.stages import Stage
from tasks.engine.computation import Compute, Window, store_windows
from tasks.engine.stage_step import EnginePlan, StageStep
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows
from tasks.runtime.cancellation import current_cancellation
from tasks.runtime.threads import WorkerThreads
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables

AHEAD = 4
"""Windows by which a judged stage may be ahead of the slowest: with 25 rows of 4,000 prompt tokens each, as many tokens
as the prefix cache of a small server holds."""

ROWS_OF_A_BLOCK = 50
"""Rows that a stage without questions computes at once: enough for a local model to form batches of like length, few
enough that little is left to compute when the last question is answered."""


_Parts: TypeAlias = dict[Stage, list[StageRows | None]]
"""The samples and results of a shard, window by window; None for what is not computed yet."""


class StoppedError(AssayError):
    """A stage is not computed, because another stage has failed or the run has ended."""


class Schedule:
    """The windows that are computed and that wait for it. Used by the threads of all stages.

    Its threads are started with it, so that a limit of threads is met before anything is computed.

    Args:
        plan: Stages of the run, and the number of rows per window.
        store: Row store of the run.
        at_once: Number of windows that are computed at the same time; fewer if not so many threads can be started.
        ahead: Number of windows by which a judged stage may be ahead of the slowest one.

    Raises:
        ThreadLimitError: No thread can be started.
    """

    def __init__(self, plan: EnginePlan, store: RowStore, at_once: int, ahead: int = AHEAD) -> None:
        self.plan = plan
        self.store = store
        self._threads = WorkerThreads("window", at_once)
        self._at_once = self._threads.count
        self._unjudged_at_once = max(1, self._at_once // 4)  # local models must not keep questions from the judge
        self._ahead = ahead
        self._changed = Condition()
        self._stages: list[StageWindows] = []
        self._next_window = 0
        self._running = 0
        self._running_unjudged = 0
        self._is_closed = False
        self._error: BaseException | None = None

    def open_shard(self, shard: Shard, known: Mapping[Stage, StageRows]) -> "list[StageWindows]":
        """Return the windows of the stages whose results are missing; those of judged stages count from now on.

        Args:
            known: The results that these stages read and that are all stored.

        Raises:
            AssayError: The samples cannot be read.
        """
        samples, size = shard.read_samples(), self.plan.window_rows
        parts: _Parts = {stage: [*_cut(rows, size)] for stage, rows in {Stage.SAMPLES: samples, **known}.items()}
        with self._changed:
            opened = [
                StageWindows(self, self.plan.steps[stage], shard, parts, self._next_window) for stage in shard.missing
            ]
            self._next_window += len(parts[Stage.SAMPLES])
            self._stages += opened
        return opened

    def close_shard(self, opened: "Sequence[StageWindows]") -> None:
        """Forget the stages of a shard, which have ended, and free their results."""
        with self._changed:
            self._stages = [stage for stage in self._stages if stage not in opened]
            for stage in opened:
                stage.free()
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
                (stage.first + stage.windows_of(block).start, stage.rank, number, stage, block)
                for number, stage in enumerate(self._stages)
                if (block := stage.ready_block(limit)) is not None
                and (stage.is_judged or self._running_unjudged < self._unjudged_at_once)
            ]
            if not ready:
                return
            *_, stage, block = min(ready, key=lambda each: each[:3])
            stage.begin(block)
            self._running += 1
            self._running_unjudged += not stage.is_judged
            self._threads.submit(self._compute, stage, block)

    def _slowest(self) -> int:
        """Return the first window that a judged stage has yet to compute."""
        behind = (stage.first + stage.slowest for stage in self._stages if stage.slowest is not None)
        return min(behind, default=self._next_window)

    def _compute(self, stage: "StageWindows", block: int) -> None:
        """Compute a block. Those who wait raise its errors: nobody else would hear of them."""
        output: tuple[Window, StageRows] | BaseException
        try:
            output = stage.context.copy().run(stage.compute_block, block)
        except BaseException as error:  # noqa: BLE001 the stage raises it
            output = error
        with suppress(BaseException), self.change():
            self._running -= 1
            self._running_unjudged -= not stage.is_judged
            stage.end(block, output)


@contextmanager
def open_schedule(plan: EnginePlan, store: RowStore, at_once: int) -> Iterator[Schedule]:
    """Yield a schedule that is closed at the end of the block.

    What is being computed then is awaited, because the next run can use its answers, unless the block is interrupted.

    Args:
        plan: Stages of the run, and the number of rows per window.
        store: Row store of the run.
        at_once: Number of windows that are computed at the same time.
    """
    schedule = Schedule(plan, store, at_once)
    try:
        yield schedule
    except Exception:
        schedule.close()
        schedule.join()
        raise
    finally:
        schedule.close()


class StageWindows:
    """The windows of a stage in a shard. Except where noted, its methods are called with the lock of the schedule held.

    Args:
        shard: The shard, which gets the places of the results.
        parts: Samples and results of the shard, which its stages share.
        first: Number of the first window of the shard, counted over all shards.
    """

    def __init__(self, schedule: Schedule, step: StageStep, shard: Shard, parts: _Parts, first: int) -> None:
        self.schedule = schedule
        self.step = step
        self.shard = shard
        self.first = first
        self.rank = list(Stage).index(step.stage)
        self.is_judged = step.is_judged
        self.slowest = 0 if step.is_judged else None
        """The first window that is yet to be computed; None for a stage that others need not wait for."""
        self.error: BaseException | None = None
        self.context = Context()
        self._compute: Compute = _refuse
        self._parts = parts
        self._windows = len(parts[Stage.SAMPLES])
        self._size = schedule.plan.window_rows
        self._width = 1 if step.is_judged else max(1, ROWS_OF_A_BLOCK // self._size)
        self._waiting: list[int] = []
        self._done: dict[int, Window] = {}
        self._running = 0
        self._started = 0.0
        self._seconds = 0.0

    def compute(self, compute: Compute) -> None:
        """Compute the stage, window by window as the results that it reads are computed, and store its results.

        Called without the lock. Windows that an earlier call has computed, before it failed, are not computed again.

        Args:
            compute: Computes the rows of the stage's table, in other threads, with the context of this one.

        Raises:
            CancelledError: The run is cancelled.
            StoppedError: Another stage has failed, or the run has ended.
            BaseException: Whatever `compute` raises first.
        """
        with self.schedule.change():
            self._restart(compute, copy_context())
        try:
            self.schedule.wait(lambda: self.is_done)
        except (StoppedError, CancelledError):
            self._waiting = []
            raise
        if self.error is not None:
            raise self.error
        places, usage = store_windows(self.schedule.store, [self._done[block] for block in sorted(self._done)])
        self.shard.add(self.step.stage, places, usage + StageUsage(seconds=self._seconds))

    def leave(self) -> None:
        """Let others no longer wait for the stage, which has ended or failed. Called without the lock."""
        with self.schedule.change():
            self.slowest = None

    def free(self) -> None:
        """Forget the results, and the context, which refers back to the task and so to these windows."""
        self._parts.clear()
        self._done.clear()
        self.context, self._compute = Context(), _refuse

    @property
    def is_done(self) -> bool:
        """Whether all windows are computed, or one has failed and none is being computed."""
        return not self._running and (self.error is not None or not self._waiting)

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
        windows, parts = self.windows_of(block), self._parts
        if self.is_judged and self.first + windows.start >= limit:
            return None
        is_ready = all(
            stage in parts and all(parts[stage][w] is not None for w in windows) for stage in self.step.reads
        )
        return block if is_ready else None

    def compute_block(self, block: int) -> tuple[Window, StageRows]:
        """Return the rows of a block, with their results. Called without the lock."""
        windows, parts = self.windows_of(block), self._parts
        read = {
            stage: StageRows.concat([part for w in windows if (part := parts[stage][w]) is not None])
            for stage in {Stage.SAMPLES, *self.step.reads}
        }
        start = windows.start * self._size
        places = self.shard.places[self.step.stage].cut(start, start + len(read[Stage.SAMPLES]))
        window = Window(self.step, places)
        return window, window.compute(self.schedule.store, read, self._compute)

    def begin(self, block: int) -> None:
        """Note that a block is being computed."""
        self._waiting.remove(block)
        if not self._running:
            self._started = monotonic()
        self._running += 1

    def end(self, block: int, output: tuple[Window, StageRows] | BaseException) -> None:
        """Note the results of a block, or its error."""
        self._running -= 1
        if not self._running:
            self._seconds += monotonic() - self._started
        if isinstance(output, BaseException):
            self.error = self.error or output
            return
        windows, parts = self.windows_of(block), self._parts[self.step.stage]
        self._done[block], rows = output
        parts[slice(windows.start, windows.stop)] = _cut(rows, self._size)
        if self.slowest is not None:
            self.slowest = next((number for number, part in enumerate(parts) if part is None), None)

    def _restart(self, compute: Compute, context: Context) -> None:
        """Compute the windows that are missing."""
        self._compute, self.context, self.error = compute, context, None
        self._waiting = [block for block in range(-(-self._windows // self._width)) if block not in self._done]
        self._parts.setdefault(self.step.stage, [None] * self._windows)


def _refuse(tables: Tables) -> StageOutput:
    raise StoppedError(f"{len(tables)} tables are not read: the shard is closed")


def _cut(rows: StageRows, size: int) -> list[StageRows]:
    """Return results window by window."""
    return [rows.cut(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
