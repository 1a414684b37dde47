"""`assay judge`: launch, inspect and stop a judge server."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import ConfigFile, Json, flag_parameters, with_parameters
from deployments.cli._support.verb import VerbGroup
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    from tasks.launcher import JudgeStatus, LaunchSettings, Progress

QUIET_SECONDS = 15.0
"""Seconds between two lines of progress if stderr is not a terminal."""

app = VerbGroup(help="Launch, inspect or stop a judge server (vLLM) here.", no_args_is_help=True)


def _with_launch(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a launched judge to a command, and pass it their values."""
    return with_parameters(command, tuple(flag_parameters(("judge", "launch"))), lambda given: given)


@app.command()
@_with_launch
def start(
    launch: dict[str, Any],
    config: ConfigFile = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the server is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Launch a judge server; options override the table [judge.launch] of --config."""
    from tasks.launcher import judge_status, launch_judge  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    settings = _settings(config, launch)
    with _progress() as on_progress:
        judge = launch_judge(settings, assay_home(), on_progress, wait=wait)
    _print(judge_status(assay_home()), as_json)
    if not as_json:
        stdout.print(f"evaluate with it: assay run SOURCE --judge {judge.url}", markup=False, soft_wrap=True)
        stdout.print("stop it: assay judge stop", markup=False)


@app.command()
def status(as_json: Json = False) -> None:
    """Show whether a launched judge server is running, and its address."""
    from tasks.launcher import judge_status  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    _print(judge_status(assay_home()), as_json)


@app.command()
def stop() -> None:
    """Stop the launched judge server."""
    from tasks.launcher import stop_judge  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    stdout.print("stopped" if stop_judge(assay_home()) else "no judge was running")


def _settings(config: Path | None, given: dict[str, Any]) -> "LaunchSettings":
    from flows.config.loading import load_config  # noqa: PLC0415 keeps `assay --help` quick

    launch = {name: value for name, value in given.items() if value is not None}
    settings = load_config(config, {"judge": {"launch": launch}} if launch else None).judge.launch
    if settings is None:
        raise ConfigError(
            "the judge to launch is not configured. Give --python (of an environment with vLLM) or --container, and "
            "--model; or use --config with a configuration that has the table [judge.launch]."
        )
    return settings


@contextmanager
def _progress() -> "Iterator[Progress]":
    """Show the seconds and the last line of the log: as a status line in a terminal, else as occasional lines."""
    if stderr.is_terminal:
        with stderr.status("launching the judge") as shown:
            yield lambda seconds, line: shown.update(Text(_line(seconds, line), overflow="ellipsis", no_wrap=True))
        return
    last_line = time.monotonic()

    def print_progress(seconds: float, line: str) -> None:
        nonlocal last_line
        if time.monotonic() - last_line >= QUIET_SECONDS:
            last_line = time.monotonic()
            stderr.print(_line(seconds, line), markup=False, soft_wrap=True)

    yield print_progress


def _line(seconds: float, line: str) -> str:
    return f"launching the judge, {seconds:.0f} s: {line}"


def _print(status: "JudgeStatus", as_json: bool) -> None:
    if not as_json:
        stdout.print(str(status), markup=False, soft_wrap=True)
        return
    record = status.record
    content = {
        "running": record is not None,
        "healthy": status.healthy,
        "url": record and record.url,
        "pid": record and record.pid,
        "model": record and record.model,
        "uptime": record and round(status.uptime, 1),
        "log": record and str(status.folder.log),
    }
    stdout.print_json(json.dumps(content))
