"""Launch a judge server, or find the one that runs with the same settings, and wait until it is ready."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from metric_core.errors import JudgeError
from tasks.options.launch_options import LaunchSettings
from tasks.processes.launch_record import JudgeFolder, JudgeRecord, read_judge_record
from tasks.processes.process_log import excerpt, last_line
from tasks.processes.readiness import http_get, wait_until_ready
from tasks.processes.spawn_judge import describe_exit, spawn
from tasks.processes.stop_launched import stop_process

Progress: TypeAlias = Callable[[float, str], None]
"""Called about once a second with the seconds since the start and the last line of the judge's log."""

POLL_SECONDS = 0.2
PROGRESS_SECONDS = 1.0
HEALTH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RunningJudge:
    """A judge server that was launched.

    Args:
        url: `/v1` URL of the judge.
        pid: Id of its process, which leads a group with the same id.
    """

    url: str
    pid: int
    log: Path


@dataclass(frozen=True, slots=True)
class LaunchedJudge:
    """A judge that is running or starting.

    Args:
        is_new: True if this call launched the judge.
    """

    folder: JudgeFolder
    record: JudgeRecord
    is_new: bool

    @property
    def running(self) -> RunningJudge:
        """The public view of the judge."""
        return RunningJudge(self.record.url, self.record.pid, self.folder.log)


def launch_judge(
    settings: LaunchSettings, home: Path, on_progress: Progress = lambda _seconds, _line: None, *, wait: bool = True
) -> RunningJudge:
    """Launch a judge that runs until someone stops it, or return the running one if it has the same settings.

    Args:
        home: Folder of caches and stores.
        on_progress: Called while the judge starts.
        wait: True waits until the judge is ready, and stops it if it does not become ready.

    Raises:
        JudgeError: The judge did not start, or a judge with other settings is running in this home.
        ConfigError: The settings name a program that does not exist.
    """
    launched = start_judge(settings, home)
    if wait:
        try:
            wait_for_judge(launched, settings, on_progress)
        except BaseException:
            if launched.is_new:
                stop_process(launched.folder, launched.record)
            raise
    return launched.running


def start_judge(settings: LaunchSettings, home: Path, owner: int | None = None, role: str = "") -> LaunchedJudge:
    """Launch a judge without waiting for it, unless one with the same settings is running.

    Args:
        home: Folder of caches and stores.
        owner: Id of this process if the judge must end with it; None otherwise.
        role: Group of questions that it is launched for; it then runs beside the judge of the home.

    Raises:
        JudgeError: A judge with other settings or of another run is running in this home.
        ConfigError: The settings name a program that does not exist.
    """
    if os.name != "posix":
        raise JudgeError("a judge can be launched on Linux and macOS only; here, launch vLLM in WSL and give its URL")
    folder = JudgeFolder.from_home(home, role)
    folder.create()
    with FileLock(folder.lock):
        record = read_judge_record(folder)
        if record is not None and record.is_running():
            _check_usable(record, settings)
            return LaunchedJudge(folder, record, is_new=False)
        if record is not None:
            stop_process(folder, record)
        return LaunchedJudge(folder, spawn(settings, folder, owner, role), is_new=True)


def wait_for_judge(launched: LaunchedJudge, settings: LaunchSettings, on_progress: Progress) -> None:
    """Wait until a judge answers.

    Args:
        on_progress: Called about once a second.

    Raises:
        JudgeError: The judge ended or was not ready in time; the message has the relevant lines of its log.
    """
    last_report = 0.0

    def check(elapsed: float) -> None:
        nonlocal last_report
        if not launched.record.is_running():
            raise _start_error(launched, settings, f"ended{describe_exit(launched.record.pid)} before it was ready")
        if elapsed - last_report >= PROGRESS_SECONDS:
            last_report = elapsed
            on_progress(elapsed, last_line(launched.folder.log))

    try:
        wait_until_ready(lambda: is_healthy(launched.record), check, settings.start_timeout, POLL_SECONDS)
    except TimeoutError as error:
        problem = f"was not ready within {settings.start_timeout:g} s (start_timeout)"
        raise _start_error(launched, settings, problem) from error


def is_healthy(record: JudgeRecord) -> bool:
    """Return whether a judge passes its health check."""
    return http_get(record.url, "/health", HEALTH_SECONDS) is not None


def _check_usable(record: JudgeRecord, settings: LaunchSettings) -> None:
    judge = f"the judge {record.url} (process {record.pid}, model {record.model})"
    if record.owner is not None:
        raise JudgeError(
            f"{judge} belongs to the run of process {record.owner} and ends with it. Wait for that run; for a judge "
            "that several runs share, use `assay judge start` before them."
        )
    if record.digest != settings.digest():
        wanted = settings.without_secrets()
        other = {name: value for name, value in record.settings.items() if value != wanted.get(name)}
        differences = "; ".join(f"{name} is {value!r}, wanted {wanted.get(name)!r}" for name, value in other.items())
        raise JudgeError(
            f"{judge} runs with other settings ({differences or 'a value in environment'}). "
            "Stop it first with `assay judge stop`, or use it by its URL."
        )


def _start_error(launched: LaunchedJudge, settings: LaunchSettings, problem: str) -> JudgeError:
    log_excerpt = excerpt(launched.folder.log, settings.variables().values())
    if not launched.is_new:
        advice = "Stop it with `assay judge stop` and start it again."
    elif "No module named 'vllm'" in log_excerpt:
        advice = "Its Python has no vLLM: install it there (`pip install vllm`), or name another one."
    else:
        advice = "Correct what the log reports, or launch vLLM yourself and give its URL."
    return JudgeError(f"the judge {problem}. {advice}\n{log_excerpt}")
