"""`assay export`: write the scores of a run for other programs."""

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from deployments.cli._support.console import stderr
from deployments.cli._support.verb import VerbGroup
from deployments.cli.report import RunFolder
from metric_core.errors import ConfigError
from tasks.options.sink_addresses import check_addresses, split_address
from tasks.reports.exports.qrels_table import read_qrels_of_run, write_qrels
from tasks.reports.exports.score_tables import Format, guess_format, parse_format, parse_shape, reshape, write_export
from tasks.runs.run_folder import RunFolder as Folder
from tasks.runtime.atomic_files import write_output

app = VerbGroup()

_EXAMPLES = """Examples:

\b
assay export runs/first > scores.csv
assay export runs/first --shape wide --out scores.parquet
"""

_STDOUT = "-"
_PROMETHEUS = "prometheus"
_QRELS, _TREC = "qrels", "trec"


@app.command(epilog=_EXAMPLES)
def export(
    run: RunFolder,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="csv|jsonl|parquet|prometheus|trec",
            help="Format of the file. Default: by the extension of --out. prometheus: the figures of the run, as text; "
            "trec: qrels.",
        ),
    ] = None,
    shape: Annotated[
        str,
        typer.Option(
            "--shape",
            metavar="long|wide|ragas|langfuse|langsmith|qrels",
            help="long: a row per cell; wide: a row per sample, a column per metric; ragas: wide, with the texts, "
            "named as in Ragas; langfuse, langsmith: the scores of traces, with the fields of that product; qrels: the "
            "relevance judgments, given and of the judge.",
        ),
    ] = "long",
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE|-", help="File to write; - is stdout.")] = _STDOUT,
    sinks: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            metavar="NAME=ADDRESS",
            help="Send the results instead of writing a file, such as otlp=http://localhost:4318 (scores as events), "
            "openinference=... (evaluations of spans), or to the address of an installed sink. Can be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the scores of a run, or send its results to a server."""
    if sinks:
        _send(run, sinks)
        return

    if shape == _QRELS or file_format == _TREC:
        _write_qrels(run, out, file_format, shape)
        return
    layout = parse_shape(shape)
    if file_format == _PROMETHEUS or (file_format is None and out.endswith(".prom")):
        _write_figures(run, out)
        return
    if file_format is not None:
        chosen_format = parse_format(file_format)
    else:
        chosen_format = Format.CSV if out == _STDOUT else guess_format(Path(out))
    table = reshape(run, layout)
    if out == _STDOUT:
        _print_export(table, chosen_format)
        return
    write_export(table, Path(out), chosen_format)
    stderr.print(f"wrote {table.num_rows} rows to {out}")


def _send(run: Path, sinks: list[str]) -> None:
    from flows.publishing.result_sinks import send_again

    try:
        pairs = [pair for sink in sinks for pair in split_address(sink)]
        check_addresses(dict(pairs))
    except ValueError as error:
        raise ConfigError(f"--sink: {error}") from None
    history = Folder(run).read_finished_record().config.history
    for name, address in pairs:
        stderr.print(f"sent {send_again(history, name, address, run.absolute())}")


def _write_figures(run: Path, out: str) -> None:
    from flows.publishing.metrics_file import describe_figures

    figures = describe_figures(run)
    if out == _STDOUT:
        _print(lambda file: file.write(figures))
        return
    write_output(Path(out), figures.decode(), "the figures")
    stderr.print(f"wrote {out}")


def _write_qrels(run: Path, out: str, file_format: str | None, shape: str) -> None:
    """Write the judgments of a run, as TREC qrels unless a format or the extension of the file says otherwise."""
    if shape != _QRELS:
        raise ConfigError(f"the format {_TREC} holds relevance judgments; write --shape {_QRELS}, got {shape!r}")
    extension = Path(out).suffix.removeprefix(".").lower()
    is_trec = file_format == _TREC or (file_format is None and extension not in set(Format))
    table = read_qrels_of_run(run, with_texts=not is_trec)
    if out == _STDOUT and is_trec:
        _print(lambda file: write_qrels(table, file))
    elif out == _STDOUT:
        _print_export(table, parse_format(file_format or extension))
    elif is_trec:
        write_qrels(table, Path(out))
    else:
        write_export(table, Path(out), parse_format(file_format or extension))
    if out != _STDOUT:
        stderr.print(f"wrote {table.num_rows} judgments to {out}")


def _print_export(table: object, chosen_format: Format) -> None:
    if chosen_format is Format.PARQUET and sys.stdout.isatty():
        raise ConfigError("cannot print Parquet to a terminal; name a file with --out, or redirect the output")
    _print(lambda file: write_export(table, file, chosen_format))


def _print(write: Callable[[BinaryIO], object]) -> None:
    """Write an export to stdout: to other programs as it is, to a terminal with control characters as escapes."""
    if not sys.stdout.isatty():
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    written = BytesIO()
    write(written)
    sys.stdout.write(written.getvalue().decode(errors="replace"))
