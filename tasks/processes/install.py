"""Install a program that serves a judge in a separate environment, at pinned versions, after a look at the machine.

vLLM and Prefect need different versions of fastapi, so they cannot share an environment.
"""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from metric_core.errors import ConfigError, JudgeError
from tasks.options.launch_backends import LaunchBackend
from tasks.processes.launch_command import PYTHON_VARIABLES

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_CUDA = re.compile(r"CUDA[\w ]* Version\s*:\s*(\d+)")
_GPUS = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
_RUNTIME = "nvidia-cuda-runtime"
_INSTALLED = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Pins:
    """The pinned packages of the environment.

    Args:
        file: Requirements, each with its hashes.
        versions: Package -> version; if it depends on the platform, one of them.
    """

    file: Path
    versions: Mapping[str, str]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a file of requirements."""
        return cls(file, dict(_PIN.findall(file.read_text(encoding="utf-8"))))

    @property
    def cuda(self) -> int | None:
        """Major version of CUDA that the driver must support; None if no package needs it."""
        version = self.versions.get(_RUNTIME)
        return None if version is None else int(version.split(".")[0])


def find_gpus(needed_cuda: int | None) -> list[str]:
    """Return name, memory and driver of each NVIDIA GPU of this machine.

    Args:
        needed_cuda: Major version of CUDA that the driver must support; None if any will do.

    Raises:
        ConfigError: There is no GPU, or its driver is too old.
    """
    gpus = _output_of([*_GPUS]).splitlines()
    if not gpus:
        raise ConfigError(
            "no NVIDIA GPU was found: nvidia-smi is missing or lists none. vLLM needs one; install on the machine that "
            "has it, or give --no-gpu-check to prepare an environment here. For a model on this machine's processors, "
            "give --cpu."
        )
    supported = _CUDA.search(_output_of([_GPUS[0]]))
    if needed_cuda is not None and supported is not None and int(supported[1]) < needed_cuda:
        raise ConfigError(
            f"the driver of {gpus[0]} supports CUDA {supported[1]}, and vLLM is built for CUDA {needed_cuda}. Update "
            "the driver, or run vLLM in a container whose image fits it: --container of `assay judge start`."
        )
    return [gpu.strip() for gpu in gpus]


def install_backend(backend: LaunchBackend, folder: Path, pins: Pins, say: Callable[[str], None]) -> Path:
    """Make a virtual environment with a program, or complete one whose installation was interrupted.

    Args:
        folder: Folder of the environment.
        pins: Packages to install.
        say: Called with a sentence before each step.

    Returns:
        Python of the environment.

    Raises:
        ConfigError: The folder holds something else, or the program is not built for this system.
        JudgeError: The environment cannot be made, or a package cannot be installed.
    """
    title, system = backend.title, platform.system()
    if system not in backend.systems:
        built = " and ".join(backend.systems)
        raise ConfigError(f"{title} is published for {built}, and this is {system}; install it where it runs")
    if folder.exists() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").is_file():
        raise ConfigError(f"{folder} exists and is not a virtual environment; name another folder")
    python = folder / "bin" / "python"
    if installed_version(python, backend.package) == (version := pins.versions[backend.package]):
        say(f"{title} ({backend.package} {version}) is installed already")
        return python
    if not python.exists():
        say(f"making the environment {folder}")
        _run([sys.executable, "-m", "venv", str(folder)], "the environment could not be made")
    say("installing the packages")
    pip = [str(python), "-m", "pip", "install", "--no-deps", "--require-hashes", "--disable-pip-version-check"]
    _run(
        [*pip, *backend.pip, "-r", str(pins.file)],
        f"{title} could not be installed; the same command continues. If pip found no matching distribution, its index "
        f"cannot be reached, or has no build for {system} on {platform.machine()}: name a server that runs elsewhere "
        "with --judge URL",
    )
    return python


def installed_version(python: Path, package: str) -> str | None:
    """Return the version of a package in the environment of a Python; None if it has none."""
    return _output_of([str(python), "-c", _INSTALLED, package]).strip() or None


def _output_of(command: list[str]) -> str:
    """Return what a command prints; nothing if it cannot be run or fails."""
    try:
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _run(command: list[str], problem: str) -> None:
    """Run a command whose output the user sees."""
    code = subprocess.run(command, env=_environment(), stdout=sys.stderr, check=False).returncode  # noqa: S603
    if code:
        raise JudgeError(f"{problem}: {' '.join(command[:4])} ended with exit code {code}, for the reason above")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in PYTHON_VARIABLES}
