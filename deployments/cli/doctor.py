"""`assay doctor`: check what a run depends on, and print advice for each problem."""

import json
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.doctor_checks import DoctorCheck, Level, all_checks
from deployments.cli._support.options import Json
from deployments.cli._support.verb import VerbGroup
from flows.config.loading import CONFIG_SUFFIXES, load_config
from flows.config.run_config import RunConfig
from metric_core.errors import AssayError
from tasks.options.model_words import replace_judge

app = VerbGroup()

PROBLEM = 7
"""Exit code if a check found a problem; warnings do not count."""

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


@app.command()
def doctor(
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE|CONFIG", help="Data or a configuration to check.", show_default=False),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", envvar="ASSAY_JUDGE", metavar="builtin|URL", help="Judge to check."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", envvar="ASSAY_MODEL", help="Model of the judge, if the server has several.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check what a run depends on, and say how to fix it."""
    config, problem = _configuration(source, judge, model)
    found = []
    for check in chain([] if problem is None else [problem], all_checks(config)):
        found.append(check)
        if not as_json:
            _print(check)
    if as_json:
        stdout.print_json(json.dumps({"ok": not _problems(found), "checks": [asdict(check) for check in found]}))
    if problems := _problems(found):
        if not as_json:
            stderr.print(f"{problems} problem{'s' if problems > 1 else ''}", style="red")
        raise typer.Exit(PROBLEM)


def _configuration(
    source: str | None, judge: str | None, model: str | None
) -> tuple[RunConfig | None, DoctorCheck | None]:
    overrides: dict[str, Any] = {}
    if judge is not None:
        overrides["judge"] = replace_judge(judge)
    if model is not None:
        overrides.setdefault("judge", {}).setdefault("server", {})["model"] = model
    try:
        if source is not None and source.endswith(CONFIG_SUFFIXES):
            return load_config(Path(source), overrides), None
        return load_config(None, {"source": source, **overrides}), None
    except AssayError as error:
        return None, DoctorCheck("configuration", Level.PROBLEM, str(error), "correct the configuration or the option")


def _problems(checks: list[DoctorCheck]) -> int:
    return sum(check.level is Level.PROBLEM for check in checks)


def _print(check: DoctorCheck) -> None:
    line = Text(f"{check.level:<8}", style=_STYLES[check.level])
    line.append(f" {check.name}: ", style="bold")
    line.append(check.found, style="default")
    stdout.print(line)
    if check.advice is not None:
        stdout.print(Text(f"         {check.advice}", style="dim"))
