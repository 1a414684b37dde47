"""Compute the windows of stages in a few threads, in the order of the rows, and pass them on to other stages.

The questions of a judged stage about a row are asked soon after those of the others, so that a judge server finds the
passages of the row in its prefix cache: no judged stage may start a window that is many windows ahead of the slowest
one. Across shards the windows are numbered through, so that the last windows of a shard overlap with the first of the
next one.
"""

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from threading import Condition, Thread
from time import monotonic
from typing import Any, TypeAlias

import pyarrow as pa

from metric_core.errors import AssayError
from metric_core.stages import Stage
from tasks.runtime.cancellation import current_cancellation
from tasks.runtime.usage import StageUsage
from tasks.stages.definition import StageOutput, Tables
from tasks.tables.table_store import StageRef, read
from tasks.windows.sample_order import SampleOrder

AHEAD = 4
"""Windows by which a judged stage may be ahead of the slowest: with 25 rows of 4,000 prompt tokens each, as many tokens
as the prefix cache of a small server holds."""

ROWS_OF_A_BLOCK = 50
"""Rows that a stage without questions computes at once: enough for a local model to form batches of like length, few
enough that little is left to compute when the last question is answered."""

Compute: TypeAlias = Callable[[Tables], StageOutput]
"""Computes the rows of a stage's table from the rows of the tables that it reads."""


class StoppedError(AssayError):
    """A stage is not computed, because another stage has failed or the run has ended."""


class Schedule:
    """The windows that are computed and that wait for it. Used by the threads of all stages.

    Args:
        at_once: Number of windows that are computed at the same time.
        ahead: Number of windows by which a judged stage may be ahead of the slowest one.
    """

    def __init__(self, at_once: int, ahead: int = AHEAD) -> None:
        self._at_once = at_once
        self._unjudged_at_once = max(1, at_once // 4)  # local models must not keep questions from the judge
        self._ahead = ahead
        self._changed = Condition()
        self._shards: list[ShardWindows] = []
        self._next_window = 0
        self._running = 0
        self._running_unjudged = 0
        self._is_closed = False

    def open_shard(
        self, samples: StageRef, tables: Mapping[Stage, StageRef], judged: Sequence[Stage], rows: int
    ) -> "ShardWindows":
        """Return the windows of a shard, whose judged stages count from now on.

        Args:
            samples: Samples of the shard.
            tables: Further tables that exist.
            judged: Judged stages that are going to be computed.
            rows: Number of rows per window.

        Raises:
            AssayError: The samples cannot be read.
        """
        shard = ShardWindows(self, samples, tables, judged, rows)
        with self._changed:
            shard.first = self._next_window
            self._next_window += shard.order.windows
            self._shards.append(shard)
        return shard

    def close_shard(self, shard: "ShardWindows") -> None:
        """Forget a shard whose stages have ended."""
        with self._changed:
            self._shards.remove(shard)
            self._changed.notify_all()

    def close(self) -> None:
        """Start no more windows; stages that wait for some end with an error."""
        with self._changed:
            self._is_closed = True
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
        """
        cancellation = current_cancellation()
        with cancellation.on_cancel(self._wake), self._changed:
            while not is_done():
                cancellation.check()
                if self._is_closed:
                    raise StoppedError("not computed: another stage has failed, or the run has ended")
                self._changed.wait()

    @contextmanager
    def change(self) -> Iterator[None]:
        """Change what others wait for, in the block."""
        with self._changed:
            yield
            self._start_windows()
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
            Thread(target=self._run, args=(work, block), name=f"{work.stage}-window", daemon=True).start()

    def _works(self) -> Iterator["StageWork"]:
        return (work for shard in self._shards for work in shard.works.values())

    def _slowest(self) -> int:
        """Return the first window that a judged stage has yet to compute."""
        return min((shard.first + shard.slowest for shard in self._shards if shard.judged), default=self._next_window)

    def _run(self, work: "StageWork", block: int) -> None:
        output: StageOutput | BaseException
        try:
            output = work.context.copy().run(work.compute, work.inputs_of(block))
            parts = work.shard.order.cut(work.shard.order.sort(output.table), work.windows_of(block))
        except BaseException as error:  # noqa: BLE001 the stage raises it
            output, parts = error, []
        with self.change():
            self._running -= 1
            self._running_unjudged -= not work.is_judged
            work.end(block, output, parts)


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
    """The tables of a shard, window by window as they are computed.

    Args:
        schedule: Schedule of the windows.
        samples: Samples of the shard.
        tables: Further tables that exist.
        judged: Judged stages that are going to be computed.
        rows: Number of rows per window.
    """

    def __init__(
        self,
        schedule: Schedule,
        samples: StageRef,
        tables: Mapping[Stage, StageRef],
        judged: Sequence[Stage],
        rows: int,
    ) -> None:
        table = read(samples)
        self.schedule = schedule
        self.order = SampleOrder(table, rows)
        self.first = 0
        self.rows = rows
        self.refs: dict[Stage, StageRef] = {**tables, Stage.SAMPLES: samples}
        self.works: dict[Stage, StageWork] = {}
        self.parts: dict[Stage, list[pa.Table | None]] = {Stage.SAMPLES: [*self._cut(table)]}
        self.judged = dict.fromkeys(judged, 0)

    @property
    def slowest(self) -> int:
        """The first window that a judged stage has yet to compute."""
        return min(self.judged.values())

    def compute(self, stage: Stage, reads: Sequence[Stage], compute: Compute, *, is_judged: bool) -> StageOutput:
        """Compute a stage, window by window as the tables that it reads are computed, and return its table.

        Windows that an earlier call has computed, before it failed, are not computed again.

        Args:
            stage: The stage.
            reads: Stages whose tables it reads.
            compute: Computes the rows of its table, in other threads, with the context of this one.
            is_judged: True if it asks a judge.

        Raises:
            CancelledError: The run is cancelled.
            StoppedError: Another stage has failed, or the run has ended.
            BaseException: Whatever `compute` raises first.
        """
        for earlier in reads:
            self._load(earlier)
        with self.schedule.change():
            work = self.works.get(stage)
            if work is None:
                work = self.works[stage] = StageWork(self, stage, reads, is_judged=is_judged)
            work.restart(compute, copy_context())
            self.parts.setdefault(stage, [None] * self.order.windows)
        try:
            self.schedule.wait(lambda: work.is_done)
        except (StoppedError, CancelledError):
            work.stop()
            raise
        if work.error is not None:
            raise work.error
        return work.output()

    def finish(self, stage: Stage, ref: StageRef) -> None:
        """Announce the stored table of a stage."""
        with self.schedule.change():
            self.refs[stage] = ref

    def leave(self, stage: Stage) -> None:
        """No longer wait for a stage, which has ended or failed, before others go on."""
        with self.schedule.change():
            self.judged.pop(stage, None)

    def refs_of(self, stages: Sequence[Stage]) -> list[StageRef]:
        """Wait for the stored tables of stages, and return them."""
        self.schedule.wait(lambda: all(stage in self.refs for stage in stages))
        return [self.refs[stage] for stage in stages]

    def _load(self, stage: Stage) -> None:
        """Read the table of a stage, unless it is being computed."""
        if stage in self.parts or stage not in self.refs:
            return
        parts = self._cut(self.order.sort(read(self.refs[stage])))
        with self.schedule.change():
            self.parts.setdefault(stage, [*parts])

    def _cut(self, table: pa.Table) -> list[pa.Table]:
        return self.order.cut(table, range(self.order.windows))


class StageWork:
    """The computation of a stage for one shard. Its methods are called with the lock of the schedule held.

    Args:
        shard: Windows of the shard.
        stage: The stage.
        reads: Stages whose tables it reads.
        is_judged: True if it asks a judge.
    """

    def __init__(self, shard: ShardWindows, stage: Stage, reads: Sequence[Stage], *, is_judged: bool) -> None:
        self.shard = shard
        self.stage = stage
        self.rank = list(Stage).index(stage)
        self.is_judged = is_judged
        self.error: BaseException | None = None
        self.context: Context = copy_context()
        self.compute: Compute
        self._reads = reads
        self._windows = shard.order.windows
        self._width = 1 if is_judged else max(1, ROWS_OF_A_BLOCK // shard.rows)
        self._outputs: list[StageOutput | None] = [None] * -(-self._windows // self._width)
        self._waiting = list(range(len(self._outputs)))
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
        self._waiting = [number for number, output in enumerate(self._outputs) if output is None]

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

    def inputs_of(self, block: int) -> dict[Stage, pa.Table]:
        """Return the rows that a block reads."""
        windows = self.windows_of(block)
        return {stage: _concatenate([self.shard.parts[stage][w] for w in windows]) for stage in self._reads}

    def begin(self, block: int) -> None:
        """Note that a block is being computed."""
        self._waiting.remove(block)
        if not self._running:
            self._started = monotonic()
        self._running += 1

    def end(self, block: int, output: StageOutput | BaseException, parts: Sequence[pa.Table]) -> None:
        """Note the output of a block, or its error."""
        self._running -= 1
        if not self._running:
            self._seconds += monotonic() - self._started
        if isinstance(output, BaseException):
            self.error = self.error or output
            return
        self._outputs[block] = output
        self.shard.parts[self.stage][slice(self.windows_of(block).start, self.windows_of(block).stop)] = parts
        missing = next((number for number, each in enumerate(self._outputs) if each is None), None)
        if missing is None:
            self.shard.judged.pop(self.stage, None)
        elif self.stage in self.shard.judged:
            self.shard.judged[self.stage] = missing

    def output(self) -> StageOutput:
        """Return the whole table, sorted by sample, and its cost."""
        usage = StageUsage(seconds=self._seconds)
        for output in self._outputs:
            usage += StageUsage() if output is None else output.usage
        return StageOutput(_concatenate(self.shard.parts[self.stage]), usage)


def _concatenate(parts: Sequence[Any]) -> pa.Table:
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)
