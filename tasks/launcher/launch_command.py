"""The command line and environment that launch settings stand for."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metric_core.errors import ConfigError
from tasks.options.launch_options import RUN, LaunchSettings
from tasks.runtime import telemetry

OURS = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""Variables about the Python of this process, which would mislead the one that has vLLM."""

CACHE_TOLD = "--enable-prompt-tokens-details"
"""Replies then say how much of a prompt was found in the prefix cache."""

ANYWHERE = "0.0.0.0"  # noqa: S104 inside a container, whose port is published on the host of the settings only


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """What to run.

    Args:
        words: program and arguments.
        environment: the whole environment of the process.
        cleanup: what ends a container that has outlived the process; empty without a container.
    """

    words: tuple[str, ...]
    environment: dict[str, str]
    cleanup: tuple[str, ...] = ()


def build_command(settings: LaunchSettings, port: int, inherited: Mapping[str, str], name: str) -> LaunchCommand:
    """What launches the judge.

    Args:
        settings: of the judge.
        port: the port to listen on.
        inherited: the environment of this process.
        name: for a container, its name.

    Raises:
        ConfigError: there is no such program.
    """
    environment = {key: value for key, value in inherited.items() if not key.startswith("PREFECT_") and key not in OURS}
    # Without PYTHONSAFEPATH a folder of the user's that is named like a package would be imported in its place.
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1", **telemetry.VLLM, **settings.variables()}
    if settings.container is None:
        python = _program(settings.python or "", "python")
        words = (python, "-m", settings.entry, "--model", settings.model, *_options(settings, settings.host, port))
        return LaunchCommand(words, environment)
    engine, options = _split(settings.container)
    words = (
        _program(settings.container[0], "container"),
        *engine[1:],
        RUN,
        *_run_options(settings, port, name),
        *options,
        settings.model,
        *_options(settings, settings.host if _has_host_network(options) else ANYWHERE, port),
    )
    return LaunchCommand(words, environment, (*engine, "rm", "--force", name))


def _program(path: str, field: str) -> str:
    """An absolute path, but no resolved one: a virtual environment's Python is a link that must not be followed."""
    found = shutil.which(Path(path).expanduser())
    if found is None:
        raise ConfigError(f"judge.launch.{field} is {path!r}, but there is no such program. Name one that exists.")
    return os.path.abspath(found)  # noqa: PTH100 pathlib's absolute keeps ".."


def _options(settings: LaunchSettings, host: str, port: int) -> list[str]:
    options = {
        "--served-model-name": settings.name,
        "--dtype": settings.dtype,
        "--tensor-parallel-size": settings.tensor_parallel_size,
        "--max-model-len": settings.max_model_len,
        "--gpu-memory-utilization": settings.gpu_memory_utilization,
        "--host": host,
        "--port": port,
    }
    said = [word for option, value in options.items() if value is not None for word in (option, str(value))]
    return [CACHE_TOLD, *said, *settings.extra_args]


def _split(container: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The engine's command before `run`, and the options and image after it."""
    at = container.index(RUN, 1)
    return container[:at], container[at + 1 :]


def _run_options(settings: LaunchSettings, port: int, name: str) -> list[str]:
    """The values of variables travel in the environment of the engine, where no list of processes shows them."""
    variables = [word for key, value in telemetry.VLLM.items() for word in ("--env", f"{key}={value}")]
    variables += [word for key in settings.environment for word in ("--env", key)]
    published = [] if _has_host_network(settings.container or ()) else ["--publish", f"{settings.host}:{port}:{port}"]
    return ["--rm", "--name", name, *variables, *published]


def _has_host_network(words: tuple[str, ...]) -> bool:
    joined = " ".join(words).replace("=", " ")
    return "--network host" in joined or "--net host" in joined
