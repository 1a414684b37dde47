"""`assay export`: write the scores of a run for other programs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli._support.console import stderr
from deployments.cli.report import RunFolder
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    from tasks.reports.run.exports import Format

_STDOUT = "-"


def export(
    run: RunFolder,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="csv|jsonl|parquet",
            help="Format of the file. Default: by the extension of --out.",
        ),
    ] = None,
    shape: Annotated[
        str,
        typer.Option(
            "--shape",
            metavar="long|wide|ragas",
            help="long: a row per cell; wide: a row per sample, a column per metric; ragas: wide, with the texts, "
            "named as in Ragas.",
        ),
    ] = "long",
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE|-", help="File to write; - is stdout.")] = _STDOUT,
) -> None:
    """Write the scores of a run as CSV, JSON Lines or Parquet."""
    from tasks.reports.run.exports import (  # noqa: PLC0415 keeps `assay --help` quick
        Format,
        guess_format,
        parse_format,
        parse_shape,
        reshape,
        write_export,
    )

    layout = parse_shape(shape)
    if file_format is not None:
        chosen_format = parse_format(file_format)
    else:
        chosen_format = Format.CSV if out == _STDOUT else guess_format(Path(out))
    table = reshape(run, layout)
    if out == _STDOUT:
        _print_export(table, chosen_format)
        return
    write_export(table, Path(out), chosen_format)
    stderr.print(f"wrote {table.num_rows} rows to {out}", markup=False, soft_wrap=True)


def _print_export(table: object, chosen_format: "Format") -> None:
    from tasks.reports.run.exports import Format, write_export  # noqa: PLC0415 keeps `assay --help` quick

    if chosen_format is Format.PARQUET and sys.stdout.isatty():
        raise ConfigError("cannot print Parquet to a terminal; name a file with --out, or redirect the output")
    write_export(table, sys.stdout.buffer, chosen_format)
    sys.stdout.buffer.flush()
