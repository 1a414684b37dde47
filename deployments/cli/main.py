"""The `assay` command: run the verb that it is called with, and translate errors to messages and exit codes."""

import os
import sys
from typing import Annotated

import typer

from deployments.cli._support.cli_errors import describe_error, describe_server_error
from deployments.cli._support.console import stderr, use_log_format
from deployments.cli._support.verb_table import Verbs
from metric_core.errors import (
    AssayError,
    BudgetSpentError,
    ConfigError,
    EmbedderError,
    FailedCellsError,
    JudgeError,
    NotComparableError,
    RunFolderError,
    SourceError,
    StorageError,
)
from tasks.runtime.proxies import exempt_loopback
from tasks.runtime.telemetry import disable_telemetry
from tasks.runtime.terminal_text import guard_streams

EXIT_CODES: tuple[tuple[type[AssayError], int], ...] = (
    (SourceError, 3),
    (JudgeError, 4),
    (EmbedderError, 4),
    (RunFolderError, 5),
    (StorageError, 5),
    (FailedCellsError, 8),
    (BudgetSpentError, 9),
    (NotComparableError, 12),
    (ConfigError, 2),
    (AssayError, 2),
)
"""Error types and their exit codes, most specific first. 0: success. 1: a bug in rag-assay. 130: interrupted."""

OUTPUT_CLOSED = 141
"""Exit code if whoever read the output has closed it, as shells report SIGPIPE."""

app = typer.Typer(
    name="assay",
    cls=Verbs,
    help="Evaluate retrieval-augmented generation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: assay run answers.jsonl. `assay docs cli` lists the exit codes; every command has a --help.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tasks.runtime.release import UNKNOWN, version  # noqa: PLC0415 only needed here

        found = version()
        typer.echo(f"rag-assay {found}{' (commit unknown)' if found == UNKNOWN else ''}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Evaluate retrieval-augmented generation."""


def main() -> None:
    """Run the command line; print errors that the user can correct as messages, without a traceback."""
    guard_streams()
    use_log_format(os.environ.get("ASSAY_LOG_FORMAT", "text"))  # also for errors before the configuration is loaded
    disable_telemetry()
    try:
        exempt_loopback()
        app()
    except AssayError as error:
        stderr.print(f"error: {error}", style="red")
        for note in getattr(error, "__notes__", ()):
            stderr.print(note, style="yellow")
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich and Typer exit with 1
            sys.exit(OUTPUT_CLOSED)
        raise
    except Exception as error:
        message = describe_error(error) if isinstance(error, OSError) else describe_server_error(error)
        if message is None:
            raise
        stderr.print(f"error: {message}", style="red")
        sys.exit(2)
