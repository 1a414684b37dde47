"""Launch the judge server of a home or of a run, find the one that runs, and stop it."""

import os
import platform
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock

from metric_core.errors import AssayError, JudgeError
from tasks.options.launch_options import LaunchSettings
from tasks.processes import watchdog
from tasks.processes.launch_command import LaunchCommand, build_command, choose_port, reachable_host
from tasks.processes.service import Service, ServiceRecord, http_get, last_line
from tasks.processes.speed import describe_speed, measure_speed
from tasks.processes.system_processes import find_exit_code, find_process, group_members, spawn_detached

Progress: TypeAlias = Callable[[float, str], None]
"""Called about once a second with the seconds since the start and the last line of the judge's log."""

PROGRESS_SECONDS = 1.0
HEALTH_SECONDS = 2.0
CLEANUP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class JudgeRecord(ServiceRecord):
    """The record of a launched judge.

    Args:
        started: Start time of the process, as the system writes it.
        url: `/v1` URL of the judge.
        backend: Title of its program.
        health: Path that answers with 200 once it is ready.
        settings: Launch settings without secrets.
        launched_at: Time of the launch, in seconds since the epoch.
        owner: Process whose run the judge belongs to; None if it runs until someone stops it.
        cleanup: Command that removes its container; empty without one.
        backend: Name of its program.
        prompt_tokens_per_second: Prompt tokens that it reads per second, as measured at its start; None if it was not.
        output_tokens_per_second: Tokens that it writes per second.
    """

    started: str
    url: str
    model: str
    backend: str
    health: str
    settings: Mapping[str, Any]
    digest: str
    launched_at: float
    owner: int | None = None
    cleanup: tuple[str, ...] = ()
    speed: tuple[float, float] | None = None

    def is_running(self) -> bool:
        """Return whether the process is running."""
        process = find_process(self.pid)
        return process is not None and process.started == self.started

    def is_healthy(self) -> bool:
        """Return whether the judge passes its health check."""
        return http_get(self.url, self.health, HEALTH_SECONDS) is not None


class JudgeService(Service[JudgeRecord]):
    """A judge. Whoever starts or stops it holds its lock."""

    name = "judge"
    title = "the judge"
    elsewhere = (
        "was launched on another machine, {host}. Set ASSAY_HOME to a folder of this machine, or, if no judge is "
        "running on that machine, delete {file}."
    )
    record_type = JudgeRecord
    error_type = JudgeError
    stop_seconds = 20.0  # a judge finishes its requests first
    poll_seconds = 0.2

    @classmethod
    def from_home(cls, home: Path, role: str = "") -> "JudgeService":
        """Return the judge in a home.

        Args:
            home: Folder of caches and stores.
            role: Group of questions that a run launches it for; empty for the judge of the home.
        """
        return cls(home.expanduser().absolute() / (f"judge-{role}" if role else "judge"))

    def is_alive(self, record: JudgeRecord) -> bool:
        """Return whether the process or, after its end, another one of its group is running.

        The system does not reuse the id while the group exists. After a reboot, the id may belong to another group, for
        example that of a service without a leader.
        """
        if not record.is_local or record.is_running():
            return True
        if find_process(record.pid) is not None or not record.started:
            return False
        return any(process.may_follow(record.started) for process in group_members(record.pid))

    def clean_up(self, record: JudgeRecord) -> None:
        """Remove the container."""
        if record.cleanup:
            with suppress(OSError, subprocess.TimeoutExpired):  # without its engine there is no container either
                subprocess.run(record.cleanup, capture_output=True, check=False, timeout=CLEANUP_SECONDS)  # noqa: S603

    def start(self, settings: LaunchSettings, owner: int | None = None, role: str = "") -> tuple[JudgeRecord, bool]:
        """Launch the judge without waiting for it, unless one with the same settings is running.

        Args:
            owner: Id of this process if the judge must end with it; None otherwise.
            role: Group of questions that it is launched for, for errors.

        Returns:
            The record, and whether this call launched the judge.

        Raises:
            JudgeError: A judge with other settings or of another run is running, or the port is in use.
            ConfigError: The settings name a program that does not exist.
        """
        if os.name != "posix":
            raise JudgeError(
                "a judge can be launched on Linux and macOS only; here, launch a server in WSL and give its URL"
            )
        settings.program.fetch(settings.model)
        self.create()
        with FileLock(self.lock):
            record = self.find()
            if record is not None and record.is_running():
                _check_usable(record, settings)
                return record, False
            if record is not None:
                self.end(record)
            return self._spawn(settings, owner, role), True

    def _spawn(self, settings: LaunchSettings, owner: int | None, role: str) -> JudgeRecord:
        port = choose_port(settings, role)
        command = build_command(settings, port, os.environ, f"rag-assay-judge-{secrets.token_hex(6)}", role)
        self.log.unlink(missing_ok=True)
        words = command.words if owner is None else self._with_watchdog(command, owner)
        child = spawn_detached(words, self.log, command.environment)
        process = find_process(child.pid)
        record = JudgeRecord(
            pid=child.pid,
            host=platform.node(),
            started=process.started if process else "",
            url=f"http://{reachable_host(settings.host)}:{port}/v1",
            model=settings.name,
            backend=settings.program.title,
            health=settings.program.health,
            settings=settings.without_secrets(),
            digest=settings.digest(),
            launched_at=time.time(),
            owner=owner,
            cleanup=command.cleanup,
        )
        try:
            self.write(record)
        except AssayError:
            self.end(record)  # without a record, no other process could find it
            raise
        return record

    def _with_watchdog(self, command: LaunchCommand, owner: int) -> tuple[str, ...]:
        arguments = watchdog.watchdog_arguments(owner, self.stop_seconds, list(command.cleanup))
        return (sys.executable, "-I", watchdog.__file__, *arguments, *command.words)

    def wait(self, record: JudgeRecord, settings: LaunchSettings, on_progress: Progress, *, is_new: bool) -> None:
        """Wait until the judge answers.

        Args:
            on_progress: Called about once a second.
            is_new: True if this process launched the judge.

        Raises:
            JudgeError: The judge ended or was not ready in time; the message has the relevant lines of its log.
        """
        last_report, program = 0.0, settings.program
        self.errors = program.errors or self.errors

        def find_problem(elapsed: float) -> str | None:
            nonlocal last_report
            if not record.is_running():
                return f"ended{_describe_exit(record.pid)} before it was ready"
            if elapsed - last_report >= PROGRESS_SECONDS:
                last_report = elapsed
                on_progress(elapsed, last_line(self.log))
            late = elapsed > settings.start_timeout
            return f"was not ready within {settings.start_timeout:g} s (start_timeout)" if late else None

        def advise(log: str) -> str:
            if not is_new:
                return "Stop it with `assay judge stop` and start it again."
            if f"No module named '{program.package}'" in log:
                return f"Its Python has no {program.title}: `{program.install}` makes one that has it; or name another."
            return f"Correct what the log reports, or launch {program.title} yourself and give its URL."

        self.wait_until_ready(record.is_healthy, find_problem, advise, settings.variables().values())

    def measure(self, record: JudgeRecord) -> JudgeRecord:
        """Measure how fast a judge reads and writes, and keep that in its record."""
        measured = replace(record, speed=measure_speed(record.url, record.model))
        self.write(measured)
        return measured


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """The state of the judge of a home.

    Args:
        record: Record of the judge; None if no judge is running.
        healthy: True if the judge answers.
        uptime: Seconds since the judge was launched.
    """

    service: JudgeService
    record: JudgeRecord | None = None
    healthy: bool = False
    uptime: float = 0.0

    def __str__(self) -> str:
        if self.record is None:
            return f"no judge is running (folder {self.service.path})"
        state = "ready" if self.healthy else "starting, or not answering"
        owner = "" if self.record.owner is None else f", owned by process {self.record.owner}"
        speed = "" if self.record.speed is None else f", {describe_speed(self.record.speed)}"
        return (
            f"{self.record.url} serves {self.record.model} with {self.record.backend} ({state}, process "
            f"{self.record.pid}{owner}, launched {self.uptime:.0f} s ago{speed}, log {self.service.log})"
        )


def launch_judge(
    settings: LaunchSettings,
    home: Path,
    on_progress: Progress = lambda _seconds, _line: None,
    *,
    wait: bool = True,
    role: str = "",
) -> JudgeRecord:
    """Launch a judge that runs until someone stops it, or return the running one if it has the same settings.

    Args:
        home: Folder of caches and stores.
        on_progress: Called while the judge starts.
        wait: True waits until the judge is ready, and stops it if it does not become ready.
        role: Name of a further judge that runs beside the judge of the home.

    Raises:
        JudgeError: The judge did not start, or a judge with other settings is running in this home.
        ConfigError: The settings name a program that does not exist.
    """
    service = JudgeService.from_home(home, role)
    record, is_new = service.start(settings)
    if wait:
        try:
            service.wait(record, settings, on_progress, is_new=is_new)
            if is_new and settings.program.has_steady_speed:
                record = service.measure(record)
        except BaseException:
            if is_new:
                service.end(record)
            raise
    return record


@contextmanager
def launch_for_scope(
    settings: LaunchSettings, home: Path, on_progress: Progress = lambda _seconds, _line: None, role: str = ""
) -> Iterator[JudgeRecord]:
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
    service = JudgeService.from_home(home)
    if role:
        kept = service.find()
        if kept is None or kept.owner is not None or kept.digest != settings.digest() or not kept.is_running():
            service = JudgeService.from_home(home, role)
    record, is_new = service.start(settings, os.getpid(), role)
    try:
        service.wait(record, settings, on_progress, is_new=is_new)
        yield record
    finally:
        if is_new:
            service.end(record)


def find_speed(home: Path, urls: Collection[str]) -> tuple[float, float] | None:
    """Return how fast the launched judge at one of some URLs reads and writes; None if it is another or unmeasured."""
    record = JudgeService.from_home(home).read()
    return record.speed if record is not None and record.url in urls and record.is_running() else None


def judge_status(home: Path, role: str = "") -> JudgeStatus:
    """Return the state of the judge of a home.

    Args:
        home: Folder of caches and stores.
        role: Name of a further judge.

    Raises:
        JudgeError: The judge runs on another machine.
    """
    service = JudgeService.from_home(home, role)
    record = service.find()
    if record is None or not record.is_running():
        return JudgeStatus(service)
    return JudgeStatus(service, record, record.is_healthy(), max(0.0, time.time() - record.launched_at))


def stop_judge(home: Path, role: str = "") -> bool:
    """Stop the judge of a home and wait until it has ended. A judge that does not end in time is killed.

    Args:
        home: Folder of caches and stores.
        role: Name of a further judge.

    Returns:
        Whether a judge was running.

    Raises:
        JudgeError: The judge runs on another machine, or does not end.
    """
    service = JudgeService.from_home(home, role)
    if not service.record_file.exists():
        return False
    with FileLock(service.lock):
        return service.stop()


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


def _describe_exit(pid: int) -> str:
    """Return how a process that this one started has ended, for messages; empty if unknown."""
    code = find_exit_code(pid)
    if code is None:
        return ""
    signal_number = -code if code < 0 else code - 128
    return f", killed by signal {signal_number}," if signal_number > 0 else f" with exit code {code}"
