"""Launch a judge for a block of code."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.options.launch_options import LaunchSettings
from tasks.processes.launch_record import JudgeFolder, read_judge_record
from tasks.processes.start import Progress, RunningJudge, start_judge, wait_for_judge
from tasks.processes.stop_launched import stop_process


@contextmanager
def launch_for_scope(
    settings: LaunchSettings, home: Path, on_progress: Progress = lambda _seconds, _line: None, role: str = ""
) -> Iterator[RunningJudge]:
    """Launch a judge for a block and stop it at the end of the block or of this process, however that ends.

    If a judge with the same settings runs in this home until someone stops it, it is used instead and left running.

    Args:
        home: Folder of caches and stores.
        on_progress: Called while the judge starts.
        role: Group of questions that it is launched for; it then runs beside the judge of the home, unless that one has
            the same settings.

    Raises:
        JudgeError: The judge did not start, or a judge with other settings or of another run is running in this home.
        ConfigError: The settings name a program that does not exist.
    """
    if role and _is_kept(settings, home):
        role = ""
    launched = start_judge(settings, home, os.getpid(), role)
    try:
        wait_for_judge(launched, settings, on_progress)
        yield launched.running
    finally:
        if launched.is_new:
            stop_process(launched.folder, launched.record)


def _is_kept(settings: LaunchSettings, home: Path) -> bool:
    """Return whether a judge with these settings runs in this home until someone stops it."""
    record = read_judge_record(JudgeFolder.from_home(home))
    return record is not None and record.is_running() and record.owner is None and record.digest == settings.digest()
