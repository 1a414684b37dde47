"""`assay report`: write the report of a run again, from its folder."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.verb import VerbGroup
from tasks.reports.run.report_page import write_report

app = VerbGroup()

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)]


@app.command()
def report(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write. Default: report.html in the run folder.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Number of rows to include with their evidence, worst first. Default: all of up to 1,000, else 200.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Write the report of a run again, as one offline HTML file."""
    written = write_report(run, rows, out).absolute()
    stdout.print(str(written))
    if show and not webbrowser.open(written.as_uri()):
        stderr.print("cannot start a browser; open the file yourself", style="yellow")
