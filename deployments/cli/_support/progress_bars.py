"""Show on stderr how far each stage is, with rate and remaining time, and which servers they wait for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from time import monotonic

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from deployments.cli._support.console import stderr
from metric_core.stages import Stage
from tasks.runtime.activity import describe_activities
from tasks.runtime.progress import listen
from tasks.runtime.threads import start_thread

QUIET_SECONDS = 15.0
"""Seconds between two lines about a stage if stderr is not a terminal."""

ENOUGH = 10
"""Units that must be done before a rate is shown: the first ones wait for models and other stages."""


@contextmanager
def stage_progress(stages: Sequence[Stage]) -> Iterator[None]:
    """Show the progress of each stage until the block ends; print plain lines if stderr is not a terminal."""
    if not stderr.is_terminal:
        lines = _Lines()
        with listen(lines), _tell_regularly(lines.tell_what_it_waits_for):
            yield
        return
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left", style="progress.remaining"),
    )
    with _Bars(*columns, console=stderr, transient=True) as progress:
        bars: dict[Stage, TaskID] = {stage: progress.add_task(str(stage), total=None, start=False) for stage in stages}

        def advance(stage: Stage, done: int, more: int | None) -> None:
            bar = bars[stage]
            progress.start_task(bar)
            total = progress.tasks[bars[stage]].total or 0
            progress.update(bar, advance=done, total=total + (more or 0))

        with listen(advance):
            yield


class _Bars(Progress):
    """Bars with a line below them for each server that the run waits for."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        for line in describe_activities():
            yield Text(line, style="dim")


@contextmanager
def _tell_regularly(tell: Callable[[], object]) -> Iterator[None]:
    """Call a function every QUIET_SECONDS, in another thread, until the block ends."""
    done = Event()

    def run() -> None:
        while not done.wait(QUIET_SECONDS):
            tell()

    thread = start_thread("progress", run)
    try:
        yield
    finally:
        done.set()
        thread.join()


def rate(per_second: float) -> str:
    """Format a rate in a readable unit.

    >>> rate(12.34), rate(0.05)
    ('12.3/s', '3.0/min')
    """
    return f"{per_second:,.1f}/s" if per_second >= 1 else f"{per_second * 60:.1f}/min"


class _Rate(ProgressColumn):
    """A column with the recent rate of a stage, in units per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{rate(speed) if speed else '':>10}", style="progress.data.speed")


@dataclass(slots=True)
class _State:
    """The progress of a stage."""

    start: float
    last_line: float
    done: int = 0
    total: int = 0


@dataclass(slots=True)
class _Lines:
    """A listener that prints a line when a stage begins, and occasional lines while it lasts."""

    states: dict[Stage, _State] = field(default_factory=dict)

    def tell_what_it_waits_for(self) -> None:
        """Print a line about each server that the run waits for."""
        for line in describe_activities():
            stderr.print(line)

    def __call__(self, stage: Stage, done: int, more: int | None) -> None:
        now = monotonic()
        if stage not in self.states:
            self.states[stage] = _State(now, now)
            stderr.print(str(stage))
        state = self.states[stage]
        state.done += done
        state.total += more or 0
        if now - state.last_line >= QUIET_SECONDS and state.done:
            state.last_line = now
            stderr.print(_line(stage, state, now - state.start))


def _line(stage: Stage, state: _State, seconds: float) -> str:
    if state.done < ENOUGH:
        return f"{stage}: {state.done:,} of {state.total:,}"
    speed = state.done / seconds
    left = (state.total - state.done) / speed
    return f"{stage}: {state.done:,} of {state.total:,}, {rate(speed)}, {left:,.0f} s left"
