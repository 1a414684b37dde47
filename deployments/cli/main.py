"""The command `assay`: collects the verbs and turns errors into messages and exit codes."""

import sys
from typing import Annotated

import typer

from deployments.cli import init, judge, metrics, plan, run, server
from deployments.cli.console import stderr
from metric_core.errors import AssayError, ConfigError, JudgeError, RunFolderError, SourceError

EXIT_CODES: tuple[tuple[type[AssayError], int], ...] = (
    (SourceError, 3),
    (JudgeError, 4),
    (RunFolderError, 5),
    (ConfigError, 2),
    (AssayError, 2),
)
"""Error -> exit code, most special first. 0: done. 1: an error of rag-assay itself. 130: interrupted."""

app = typer.Typer(
    name="assay",
    help="Evaluate retrieval-augmented generation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("metrics")(metrics.metrics)
app.command("init")(init.init)
app.add_typer(judge.app, name="judge")
app.add_typer(server.app, name="server")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 only needed here

        typer.echo(f"rag-assay {version('rag-assay')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Evaluate retrieval-augmented generation."""


def main() -> None:
    """Runs the command line; an error that the user can put right is a message, not a traceback."""
    try:
        app()
    except AssayError as error:
        stderr.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except KeyboardInterrupt:
        stderr.print("interrupted; stage tables that were finished are kept", markup=False)
        sys.exit(130)
