"""Starts the process of a judge: detached, in a group of its own, with its output in a file."""

import os
import platform
import secrets
import socket
import subprocess
import sys
import time

from metric_core.errors import JudgeError
from tasks.launcher import watchdog as watch
from tasks.launcher.launch_command import LaunchCommand, build_command
from tasks.launcher.launch_record import JudgeFolder, JudgeRecord
from tasks.launcher.processes import find_process
from tasks.launcher.stop import STOP_SECONDS, stop_process
from tasks.options.launch_options import LaunchSettings

_children: list[subprocess.Popen[bytes]] = []
"""Keeps the objects of judges that outlive the call that launched them: one that is dropped meanwhile warns."""


def spawn(settings: LaunchSettings, folder: JudgeFolder, owner: int | None) -> JudgeRecord:
    """Starts the process of a judge and leaves its record.

    Args:
        settings: of the judge.
        folder: of its record and log; the log starts anew.
        owner: this process's number, for a judge that ends with it.

    Raises:
        JudgeError: its port is taken.
        ConfigError: the settings name a program that does not exist.
    """
    port = settings.port or _free_port(settings.host)
    _check_port(settings.host, port)
    command = build_command(settings, port, os.environ, f"rag-assay-judge-{secrets.token_hex(6)}")
    folder.log.unlink(missing_ok=True)
    with os.fdopen(os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        child = subprocess.Popen(  # noqa: S603 the program that the settings name
            command.words if owner is None else _wrap_in_watchdog(command, owner),
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _children[:] = [other for other in _children if other.poll() is None]
    _children.append(child)
    process = find_process(child.pid)
    record = JudgeRecord(
        pid=child.pid,
        started=process.started if process else "",
        host=platform.node(),
        url=f"http://{_is_reachable(settings.host)}:{port}/v1",
        model=settings.name,
        settings=settings.shown(),
        digest=settings.digest(),
        launched_at=time.time(),
        owner=owner,
        cleanup=command.cleanup,
    )
    try:
        record.write(folder)
    except OSError:
        stop_process(folder, record)  # nobody would find it
        raise
    return record


def exit_of(pid: int) -> str:
    """How a process that was started here has ended, in words; empty where that is not known."""
    code = next((child.poll() for child in _children if child.pid == pid), None)
    if code is None:
        return ""
    killed = -code if code < 0 else code - 128
    return f", killed by signal {killed}," if killed > 0 else f" with exit code {code}"


def _wrap_in_watchdog(command: LaunchCommand, owner: int) -> tuple[str, ...]:
    cleanup = list(command.cleanup)
    return (
        sys.executable,
        "-I",
        watch.__file__,
        *watch.watchdog_arguments(owner, STOP_SECONDS, cleanup),
        *command.words,
    )


def _free_port(host: str) -> int:
    with socket.create_server((host, 0), family=_family(host)) as listener:
        return int(listener.getsockname()[1])


def _check_port(host: str, port: int) -> None:
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
        raise JudgeError(
            f"the judge can not listen on port {port} of {host}: {error.strerror}. Set another judge.launch.port, "
            "or 0 for a free one."
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _is_reachable(host: str) -> str:
    """The address to ask, where the one to listen on may stand for all of them."""
    if ":" in host:
        return "[::1]" if host == "::" else f"[{host}]"
    return "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 compared, not bound
