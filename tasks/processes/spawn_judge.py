"""Start the process of a judge and write its record."""

import os
import platform
import secrets
import socket
import sys
import time

from metric_core.errors import AssayError, JudgeError
from tasks.options.launch_options import LaunchSettings
from tasks.processes import watchdog
from tasks.processes.launch_command import LaunchCommand, build_command
from tasks.processes.launch_record import JudgeFolder, JudgeRecord
from tasks.processes.running_processes import find_process
from tasks.processes.spawn import find_exit_code, spawn_detached
from tasks.processes.stop_launched import STOP_SECONDS, stop_process


def spawn(settings: LaunchSettings, folder: JudgeFolder, owner: int | None, role: str = "") -> JudgeRecord:
    """Start the process of a judge and write its record.

    Args:
        folder: Folder of the judge; its log is replaced.
        owner: Id of this process if the judge must end with it; None otherwise.
        role: Group of questions that it is launched for, for errors.

    Raises:
        JudgeError: The port is in use.
        ConfigError: The settings name a program that does not exist.
    """
    port = settings.port or _find_free_port(settings.host)
    _check_port(settings.host, port, role)
    command = build_command(settings, port, os.environ, f"rag-assay-judge-{secrets.token_hex(6)}", role)
    folder.log.unlink(missing_ok=True)
    words = command.words if owner is None else _wrap_in_watchdog(command, owner)
    child = spawn_detached(words, folder.log, command.environment)
    process = find_process(child.pid)
    record = JudgeRecord(
        pid=child.pid,
        host=platform.node(),
        started=process.started if process else "",
        url=f"http://{_reachable_host(settings.host)}:{port}/v1",
        model=settings.name,
        settings=settings.without_secrets(),
        digest=settings.digest(),
        launched_at=time.time(),
        owner=owner,
        cleanup=command.cleanup,
    )
    try:
        record.write(folder)
    except AssayError:
        stop_process(folder, record)  # without a record, no other process could find it
        raise
    return record


def describe_exit(pid: int) -> str:
    """Return how a process that this one started has ended, for messages; empty if unknown."""
    code = find_exit_code(pid)
    if code is None:
        return ""
    signal_number = -code if code < 0 else code - 128
    return f", killed by signal {signal_number}," if signal_number > 0 else f" with exit code {code}"


def _wrap_in_watchdog(command: LaunchCommand, owner: int) -> tuple[str, ...]:
    arguments = watchdog.watchdog_arguments(owner, STOP_SECONDS, list(command.cleanup))
    return (sys.executable, "-I", watchdog.__file__, *arguments, *command.words)


def _find_free_port(host: str) -> int:
    with socket.create_server((host, 0), family=_family(host)) as listener:
        return int(listener.getsockname()[1])


def _check_port(host: str, port: int, role: str) -> None:
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
        table = f"judge.{role}.launch" if role else "judge.launch"
        raise JudgeError(
            f"the judge cannot listen on port {port} of {host}: {error.strerror}. Set another {table}.port, "
            "or 0 for a free one."
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _reachable_host(host: str) -> str:
    """Return the host to connect to; the host to listen on may stand for all addresses."""
    if ":" in host:
        return "[::1]" if host == "::" else f"[{host}]"
    return "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 compared, not bound
