"""Launches a judge server, or finds the one that runs with the same settings, and waits until it is ready."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from filelock import FileLock

from metric_core.errors import JudgeError
from tasks.launcher.launch_log import excerpt, last_line
from tasks.launcher.launch_record import JudgeFolder, JudgeRecord, read_judge_record
from tasks.launcher.spawn import exit_of, spawn
from tasks.launcher.stop import stop_process
from tasks.options.launch_options import LaunchSettings

Progress: TypeAlias = Callable[[float, str], None]
"""Called about once a second with the seconds since the start and the last line of the judge's log."""

POLL_SECONDS = 0.2
PROGRESS_SECONDS = 1.0
HEALTH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RunningJudge:
    """A judge server that was launched.

    Args:
        url: its `/v1` URL.
        pid: its process, which leads a group of the same number.
        log: what it prints.
    """

    url: str
    pid: int
    log: Path


@dataclass(frozen=True, slots=True)
class LaunchedJudge:
    """A judge that is there or on its way.

    Args:
        folder: its folder.
        record: what is known of it.
        is_new: whether it was launched by this call.
    """

    folder: JudgeFolder
    record: JudgeRecord
    is_new: bool

    @property
    def running(self) -> RunningJudge:
        """For callers."""
        return RunningJudge(self.record.url, self.record.pid, self.folder.log)


def launch_judge(
    settings: LaunchSettings, home: Path, on_progress: Progress = lambda _seconds, _line: None, *, wait: bool = True
) -> RunningJudge:
    """Launches a judge that is kept until somebody stops it; one that runs with the same settings is used as it is.

    Args:
        settings: of the judge.
        home: the folder of stores and caches.
        on_progress: called while it starts.
        wait: until it is ready. One that does not get ready is stopped then.

    Raises:
        JudgeError: it did not start, or a judge with other settings runs in this home.
        ConfigError: the settings name a program that does not exist.
    """
    launched = start_judge(settings, home)
    if wait:
        try:
            wait_until_ready(launched, settings, on_progress)
        except BaseException:
            if launched.is_new:
                stop_process(launched.folder, launched.record)
            raise
    return launched.running


def start_judge(settings: LaunchSettings, home: Path, owner: int | None = None) -> LaunchedJudge:
    """Launches a judge without waiting for it, unless one runs with the same settings.

    Args:
        settings: of the judge.
        home: the folder of stores and caches.
        owner: this process's number, for a judge that ends with it.

    Raises:
        JudgeError: a judge with other settings runs in this home, or one that another run owns.
        ConfigError: the settings name a program that does not exist.
    """
    if os.name != "posix":
        raise JudgeError("a judge can be launched on Linux and macOS only; here, launch vLLM in WSL and give its URL")
    folder = JudgeFolder.of(home)
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(folder.lock):
        record = read_judge_record(folder)
        if record is not None and record.is_running():
            _check_use(record, settings)
            return LaunchedJudge(folder, record, is_new=False)
        if record is not None:
            stop_process(folder, record)
        return LaunchedJudge(folder, spawn(settings, folder, owner), is_new=True)


def wait_until_ready(launched: LaunchedJudge, settings: LaunchSettings, on_progress: Progress) -> None:
    """Waits until the judge answers.

    Raises:
        JudgeError: it ended, or did not get ready in time; the message has what matters of its log.
    """
    start = time.monotonic()
    shown = start
    while not is_healthy(launched.record):
        now = time.monotonic()
        if not launched.record.is_running():
            raise _failure(launched, settings, f"ended{exit_of(launched.record.pid)} before it was ready")
        if now - start > settings.start_timeout:
            raise _failure(launched, settings, f"was not ready within {settings.start_timeout:g} s (start_timeout)")
        if now - shown >= PROGRESS_SECONDS:
            shown = now
            on_progress(now - start, last_line(launched.folder.log))
        time.sleep(POLL_SECONDS)


def is_healthy(record: JudgeRecord) -> bool:
    """Whether the judge says that it can serve."""
    address = urlsplit(record.url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _check_use(record: JudgeRecord, settings: LaunchSettings) -> None:
    which = f"the judge {record.url} (process {record.pid}, model {record.model})"
    if record.owner is not None:
        raise JudgeError(
            f"{which} belongs to the run of process {record.owner} and ends with it. Wait for that run; for a judge "
            "that several runs share, use `assay judge start` before them."
        )
    if record.digest != settings.digest():
        wanted = settings.shown()
        other = {name: value for name, value in record.settings.items() if value != wanted.get(name)}
        differences = "; ".join(f"{name} is {value!r}, wanted {wanted.get(name)!r}" for name, value in other.items())
        raise JudgeError(
            f"{which} runs with other settings ({differences or 'a value in environment'}). "
            "Stop it first with `assay judge stop`, or use it by its URL."
        )


def _failure(launched: LaunchedJudge, settings: LaunchSettings, what: str) -> JudgeError:
    shown = excerpt(launched.folder.log, settings.variables().values())
    if not launched.is_new:
        advice = "Stop it with `assay judge stop` and start it again."
    elif "No module named 'vllm'" in shown:
        advice = "Its Python has no vLLM: install it there (`pip install vllm`), or name another one."
    else:
        advice = "Put right what the log names, or launch vLLM yourself and give its URL."
    return JudgeError(f"the judge {what}. {advice}\n{shown}")
