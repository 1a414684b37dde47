"""`assay accept`: make a finished run the baseline of its evaluation."""

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import declared_option
from deployments.cli._support.verb import VerbGroup

app = VerbGroup()

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder to accept.", show_default=False)]


@app.command()
def accept(
    run: Run, baselines: Annotated[str | None, declared_option("baselines", "--baselines", ("deploy",))] = None
) -> None:
    """Accept a run as the baseline of its evaluation.

    Later runs are compared with it, even if it is older than the present baseline.
    """
    from flows.monitoring.acceptance import accept_run

    done = accept_run(run, baselines)
    before = "there was none before" if done.earlier is None else f"it replaces {done.earlier.version}"
    stdout.print(f"{done.baseline.version} is now the baseline of {done.baseline.index}; {before}")
    for warning in done.warnings:
        stderr.print(f"warning: {warning}", style="yellow")
