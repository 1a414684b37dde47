"""Declare the programs that can serve a launched judge, one row each: how it is installed, launched and recognized."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tasks.runtime import gguf, telemetry

BackendName: TypeAlias = Literal["vllm", "llama.cpp"]

_NOTHING: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchBackend:
    """The facts about a program that serves.

    Args:
        title: Its name in messages.
        package: The package that its environment must have.
        needs_gpu: True if it is for machines with an NVIDIA GPU.
        folder: Folder of the environment unless another is named.
        pins: File in `deployments/container` with the packages of the environment.
        pip: Options of pip for them.
        install: The command that makes the environment.
        download: Size of the packages for Linux on x86-64, as the package index states it.
        installed: Their size on disk.
        model: Words for a model that it serves, in messages.
        systems: Names of the systems for which the package is built, as `platform.system()` tells them.
        run: Arguments of the environment's Python that start it.
        flags: Setting of the launch -> the option that passes it on, None if it is passed on in another way; others are
            refused.
        further: Further options.
        variables: Environment variables of its process.
        health: Path that it answers with 200 once it is ready.
        errors: Matches what its log says about why it ended; None if errors of Python do.
        name_of: Returns the name of a model in requests, unless one is given.
        is_for: Returns whether it is the program for a model, unless one is named.
        locate: Returns the path of a model on this machine, or its name.
        fetch: Makes a model available on this machine.
        plan: Returns options that follow from the model, the tokens of a request and this machine; raises ConfigError
            for a model that cannot be served here.
        has_steady_speed: True if its speed depends little on how many requests are in flight, so that a short
            measurement at the start predicts a run.
    """

    title: str
    package: str
    needs_gpu: bool
    folder: str
    pins: str
    pip: tuple[str, ...] = ()
    install: str
    download: str
    installed: str
    model: str
    systems: tuple[str, ...]
    run: tuple[str, ...]
    flags: Mapping[str, str | None]
    further: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    health: str = "/health"
    errors: re.Pattern[str] | None = None
    name_of: Callable[[str], str] = str
    is_for: Callable[[str], bool]
    locate: Callable[[str], str] = str
    fetch: Callable[[str], None] = lambda _model: None
    plan: Callable[[str, int | None], Mapping[str, object]] = lambda _model, _window: _NOTHING
    has_steady_speed: bool = False

    @property
    def python(self) -> str:
        """Python of the environment unless another is named."""
        return f"{self.folder}/bin/python"


LAUNCH_BACKENDS: Mapping[BackendName, LaunchBackend] = {
    "llama.cpp": LaunchBackend(
        title="llama.cpp",
        package="xllamacpp",
        needs_gpu=False,
        folder=".venv-llama",
        pins="llama-pins.txt",
        pip=("--only-binary", ":all:"),
        install="assay judge install --cpu",
        download="34 MB",
        installed="130 MB",
        model="FILE.gguf",
        systems=("Linux", "Darwin"),
        run=(str(Path(__file__).parents[1] / "processes" / "serve_gguf.py"),),
        flags={"served_name": "--alias", "host": "--host", "port": "--port", "max_model_len": None},
        variables=telemetry.DO_NOT_TRACK,
        errors=re.compile(r"(?<= E ).*(?:error|fail|unable).*|\w+Error: \S"),
        name_of=lambda model: Path(model).name.removesuffix(gguf.SUFFIX),
        is_for=lambda model: model.endswith(gguf.SUFFIX),
        locate=gguf.locate_gguf,
        fetch=gguf.fetch_gguf,
        plan=gguf.plan_server,
        has_steady_speed=True,
    ),
    "vllm": LaunchBackend(
        title="vLLM",
        package="vllm",
        needs_gpu=True,
        folder=".venv-vllm",
        pins="vllm-pins.txt",
        install="assay judge install",
        download="4 GB",
        installed="8.4 GB",
        model="MODEL",
        systems=("Linux",),
        # `vllm serve` looks up a distribution named vllm, which repackaged builds do not have.
        run=("-m", "vllm.entrypoints.openai.api_server"),
        flags={
            "container": None,
            "served_name": "--served-model-name",
            "dtype": "--dtype",
            "tensor_parallel_size": "--tensor-parallel-size",
            "max_model_len": "--max-model-len",
            "gpu_memory_utilization": "--gpu-memory-utilization",
            "host": "--host",
            "port": "--port",
        },
        # Replies then report how many tokens of a prompt were found in the prefix cache.
        further=("--enable-prompt-tokens-details",),
        variables=telemetry.VLLM,
        is_for=lambda _model: True,
    ),
}
"""The programs that can be launched; the first one that is for a model serves it, unless one is named."""


def find_launch_backend(name: BackendName | None, model: str) -> LaunchBackend:
    """Return the program of a name, or else the one for a model.

    >>> find_launch_backend(None, "models/qwen.gguf").title, find_launch_backend(None, "Qwen/Qwen3-8B").title
    ('llama.cpp', 'vLLM')
    """
    if name is not None:
        return LAUNCH_BACKENDS[name]
    return next(each for each in LAUNCH_BACKENDS.values() if each.is_for(model))
