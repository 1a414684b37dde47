"""Choose the port, and build the command line and environment, that launch a judge."""

import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metric_core.errors import ConfigError, JudgeError
from tasks.options.launch_options import RUN, LaunchSettings

PYTHON_VARIABLES = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""Variables that describe the Python of this process and would mislead the one that has the program."""

ANYWHERE = "0.0.0.0"  # noqa: S104 inside a container, whose port is published on the host of the settings only


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The command that launches a judge.

    Args:
        words: Program and arguments.
        environment: All environment variables of the process.
        cleanup: Command that removes a container that has outlived the process; empty without a container.
    """

    words: tuple[str, ...]
    environment: dict[str, str]
    cleanup: tuple[str, ...] = ()


def build_command(
    settings: LaunchSettings, port: int, inherited: Mapping[str, str], name: str, role: str = ""
) -> LaunchCommand:
    """Build the command that launches a judge.

    Args:
        port: Port to listen on.
        inherited: Environment of this process.
        name: Name of the container, if the settings run one.
        role: Group of questions that it is launched for, for errors; empty for the judge of all.

    Raises:
        ConfigError: The settings name a program that does not exist, or a model that it cannot serve here.
    """
    backend = settings.program
    environment = {
        key: value for key, value in inherited.items() if not key.startswith("PREFECT_") and key not in PYTHON_VARIABLES
    }
    # Without PYTHONSAFEPATH, a folder in the working directory would shadow a package of the same name.
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1", **backend.variables, **settings.variables()}
    if settings.container is None:
        python = _program(settings.python or backend.python, "python", role, backend.install)
        run = backend.run if settings.entry is None else ("-m", settings.entry)
        named = (python, *run, "--model", backend.locate(settings.model))
        return LaunchCommand((*named, *_options(settings, settings.host, port)), environment)
    engine, options = _split(settings.container)
    words = (
        _program(settings.container[0], "container", role),
        *engine[1:],
        RUN,
        *_run_options(settings, port, name),
        *options,
        settings.model,
        *_options(settings, settings.host if _has_host_network(options) else ANYWHERE, port),
    )
    return LaunchCommand(words, environment, (*engine, "rm", "--force", name))


def choose_port(settings: LaunchSettings, role: str = "") -> int:
    """Return the port of the settings, or a free one.

    Args:
        role: Group of questions that the judge is launched for, for errors.

    Raises:
        JudgeError: The port is in use, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.create_server((settings.host, settings.port), family=family) as listener:
            return int(listener.getsockname()[1])
    except OSError as error:
        where = f"port {settings.port} of {settings.host}" if settings.port else settings.host
        instead = "port, or 0 for a free one" if settings.port else "host"
        raise JudgeError(
            f"the judge cannot listen on {where}: {error.strerror}. Set another {_table(role)}.{instead}."
        ) from error


def reachable_host(host: str) -> str:
    """Return the host to connect to; the host to listen on may stand for all addresses."""
    if ":" in host:
        return "[::1]" if host == "::" else f"[{host}]"
    return "127.0.0.1" if host == ANYWHERE else host


def _table(role: str) -> str:
    """Return the table of the configuration that says how a judge is launched."""
    return f"judge.{role}.launch" if role else "judge.launch"


def _program(path: str, field: str, role: str, install: str = "") -> str:
    """Return the absolute path of a program, without following links: a virtual environment's Python is a link."""
    program = shutil.which(Path(path).expanduser())
    if program is None:
        make = f"Make it with `{install}`, or name" if install else "Name"
        raise ConfigError(f"{_table(role)}.{field} is {path!r}, but there is no such program. {make} one that exists.")
    return os.path.abspath(program)  # noqa: PTH100 pathlib's absolute keeps ".."


def _options(settings: LaunchSettings, host: str, port: int) -> list[str]:
    backend = settings.program
    chosen = {"served_name": settings.name, "host": host, "port": port}
    options = {
        flag: chosen.get(name, getattr(settings, name)) for name, flag in backend.flags.items() if flag is not None
    }
    options |= backend.plan(settings.model, settings.max_model_len)
    words = [word for option, value in options.items() if value is not None for word in (option, str(value))]
    return [*backend.further, *words, *settings.extra_args]


def _split(container: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a container command into the engine before `run`, and the options and image after it."""
    at = container.index(RUN, 1)
    return container[:at], container[at + 1 :]


def _run_options(settings: LaunchSettings, port: int, name: str) -> list[str]:
    """Return the options of `run`. Values of variables stay in the environment, because command lines are public."""
    variables = [word for key, value in settings.program.variables.items() for word in ("--env", f"{key}={value}")]
    variables += [word for key in settings.environment for word in ("--env", key)]
    published = [] if _has_host_network(settings.container or ()) else ["--publish", f"{settings.host}:{port}:{port}"]
    return ["--rm", "--name", name, *variables, *published]


def _has_host_network(words: tuple[str, ...]) -> bool:
    joined = " ".join(words).replace("=", " ")
    return "--network host" in joined or "--net host" in joined
