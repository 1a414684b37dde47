"""Progress of the stages on stderr: a bar each, with rate and remaining time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from deployments.cli.console import stderr
from metric_core.products import Stage
from tasks.progress import listening


@contextmanager
def stage_progress(stages: Sequence[Stage]) -> Iterator[None]:
    """Shows how far each stage is until the block ends; plain lines where stderr is no terminal."""
    if not stderr.is_terminal:
        with listening(_Lines()):
            yield
        return
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True) as progress:
        bars: dict[Stage, TaskID] = {stage: progress.add_task(str(stage), total=None, start=False) for stage in stages}

        def advance(stage: Stage, done: int, more: int | None) -> None:
            bar = bars[stage]
            progress.start_task(bar)
            total = progress.tasks[bars[stage]].total or 0
            progress.update(bar, advance=done, total=total + (more or 0))

        with listening(advance):
            yield


class _Lines:
    """One line when a stage begins: for logs."""

    def __init__(self) -> None:
        self._seen: set[Stage] = set()

    def __call__(self, stage: Stage, _done: int, _more: int | None) -> None:
        if stage not in self._seen:
            self._seen.add(stage)
            stderr.print(str(stage))
