"""A judge for as long as a block of code runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.launcher.start import Progress, RunningJudge, start_judge, wait_until_ready
from tasks.launcher.stop import stop_process
from tasks.options.launch_options import LaunchSettings


@contextmanager
def launch_for_scope(
    settings: LaunchSettings, home: Path, on_progress: Progress = lambda _seconds, _line: None
) -> Iterator[RunningJudge]:
    """Launches a judge for the block and stops it after, whatever happens in between, the end of this process included.

    A judge that is kept in this home and has the same settings is used instead, and left running.

    Args:
        settings: of the judge.
        home: the folder of stores and caches.
        on_progress: called while it starts.

    Raises:
        JudgeError: it did not start, a judge with other settings runs in this home, or one that another run owns.
        ConfigError: the settings name a program that does not exist.
    """
    launched = start_judge(settings, home, owner=os.getpid())
    try:
        wait_until_ready(launched, settings, on_progress)
        yield launched.running
    finally:
        if launched.is_new:
            stop_process(launched.folder, launched.record)
