"""`assay judge`: a judge server of one's own, launched, looked at and stopped."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import ConfigFile, Json
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    from tasks.launcher import JudgeStatus, LaunchSettings, Progress

QUIET_SECONDS = 15.0
"""Between two lines of progress where stderr is no terminal."""

app = typer.Typer(help="A judge server of your own: vLLM, launched here.", no_args_is_help=True)


def _variable(field: str) -> str:
    return f"ASSAY_JUDGE__LAUNCH__{field}"


@app.command()
def start(
    config: ConfigFile = None,
    python: Annotated[
        str | None,
        typer.Option("--python", envvar=_variable("PYTHON"), help="Python of an environment that has vLLM."),
    ] = None,
    container: Annotated[
        str | None,
        typer.Option(
            "--container",
            envvar=_variable("CONTAINER"),
            help="Instead of --python: the command that runs a container with vLLM, up to the image.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", envvar=_variable("MODEL"), help="The model: its name at the hub, or its folder."),
    ] = None,
    served_name: Annotated[
        str | None,
        typer.Option("--served-name", envvar=_variable("SERVED_NAME"), help="The name that requests give."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", envvar=_variable("DTYPE"), help="Type of weights and activations.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None,
        typer.Option("--gpus", envvar=_variable("TENSOR_PARALLEL_SIZE"), help="GPUs that share the model."),
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option("--max-model-len", envvar=_variable("MAX_MODEL_LEN"), help="Tokens that a request may have."),
    ] = None,
    gpu_memory_utilization: Annotated[
        float | None,
        typer.Option(
            "--gpu-memory", envvar=_variable("GPU_MEMORY_UTILIZATION"), help="Share of the GPU's memory to take."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", envvar=_variable("PORT"), help="Port to listen on; 0: a free one.")
    ] = None,
    extra_args: Annotated[
        str | None,
        typer.Option("--extra-args", envvar=_variable("EXTRA_ARGS"), help="Further options of vLLM, as one text."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Launch a judge server and keep it running; options go before the table [judge.launch] of --config."""
    from tasks.launcher import judge_status, launch_judge  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    settings = _settings(
        config,
        python=python,
        container=container,
        model=model,
        served_name=served_name,
        dtype=dtype,
        tensor_parallel_size=tensor_parallel_size,
        max_model_len=max_model_len,
        gpu_memory_utilization=gpu_memory_utilization,
        port=port,
        extra_args=extra_args,
    )
    with _progress() as on_progress:
        judge = launch_judge(settings, assay_home(), on_progress, wait=wait)
    _print(judge_status(assay_home()), as_json)
    if not as_json:
        stdout.print(f"evaluate with it: assay run SOURCE --judge {judge.url}", markup=False, soft_wrap=True)
        stdout.print("stop it: assay judge stop", markup=False)


@app.command()
def status(as_json: Json = False) -> None:
    """Say whether a launched judge server runs, and where."""
    from tasks.launcher import judge_status  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    _print(judge_status(assay_home()), as_json)


@app.command()
def stop() -> None:
    """Stop the launched judge server."""
    from tasks.launcher import stop_judge  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    stdout.print("stopped" if stop_judge(assay_home()) else "no judge was running")


def _settings(config: Path | None, **said: Any) -> "LaunchSettings":
    from flows.config.loading import load_config  # noqa: PLC0415 keeps `assay --help` quick

    launch = {name: value for name, value in said.items() if value is not None}
    settings = load_config(config, {"judge": {"launch": launch}} if launch else None).judge.launch
    if settings is None:
        raise ConfigError(
            "nothing says what to launch. Give --python (of an environment that has vLLM) or --container, and --model; "
            "or a configuration with the table [judge.launch] by --config."
        )
    return settings


@contextmanager
def _progress() -> "Iterator[Progress]":
    """Seconds and the last line of the log: in one place of a terminal, or as a line now and then."""
    if stderr.is_terminal:
        with stderr.status("launching the judge") as shown:
            yield lambda seconds, line: shown.update(Text(_line(seconds, line), overflow="ellipsis", no_wrap=True))
        return
    told = time.monotonic()

    def tell(seconds: float, line: str) -> None:
        nonlocal told
        if time.monotonic() - told >= QUIET_SECONDS:
            told = time.monotonic()
            stderr.print(_line(seconds, line), markup=False, soft_wrap=True)

    yield tell


def _line(seconds: float, line: str) -> str:
    return f"launching the judge, {seconds:.0f} s: {line}"


def _print(known: "JudgeStatus", as_json: bool) -> None:
    if not as_json:
        stdout.print(str(known), markup=False, soft_wrap=True)
        return
    record = known.record
    content = {
        "running": record is not None,
        "healthy": known.healthy,
        "url": record and record.url,
        "pid": record and record.pid,
        "model": record and record.model,
        "uptime": record and round(known.uptime, 1),
        "log": record and str(known.folder.log),
    }
    stdout.print_json(json.dumps(content))
