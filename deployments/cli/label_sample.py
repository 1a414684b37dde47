"""`assay label-sample`: draw rows of a run for people to label."""

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr
from deployments.cli._support.options import seed_option
from deployments.cli._support.verb import VerbGroup
from deployments.cli.report import RunFolder
from metric_core.errors import ConfigError
from metric_core.statistics.resampling import SEED
from tasks.calibration.label_sampling import SampleOptions, sample_rows
from tasks.reports.exports.score_tables import guess_format, write_export

app = VerbGroup()


@app.command()
def label_sample(
    run: RunFolder,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write: .csv, .jsonl or .parquet.", show_default=False
        ),
    ],
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of rows to draw.")] = 100,
    label: Annotated[str, typer.Option("--label", help="Name of the empty column for the labels.")] = "label",
    metric: Annotated[
        str | None, typer.Option("--metric", "-m", help="Draw only rows with a score of this metric. Default: any row.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Column that groups rows: at most one row of each group is drawn.")
    ] = None,
    strata: Annotated[
        int | None,
        typer.Option(
            "--strata",
            min=2,
            max=20,
            help="Number of equal parts of the metric's range to draw from, more rows where labels are uncertain.",
        ),
    ] = None,
    seed: Annotated[int | None, seed_option("ASSAY_LABEL_SAMPLE_SEED")] = None,
) -> None:
    """Draw rows of a run at random for people to label."""
    file_format = guess_format(out)
    if out.exists():
        raise ConfigError(f"{out} already exists, and may hold labels. Name another file with --out, or remove it.")
    options = SampleOptions(
        rows=rows, label=label, metric=metric, by=by, strata=strata, seed=SEED if seed is None else seed
    )
    table = sample_rows(run, options)
    write_export(table, out, file_format)
    named = "".join(f" {flag} {value}" for flag, value in (("--metric", metric), ("--by", by)) if value)
    stderr.print(
        f"wrote {table.num_rows} rows to {out}, in random order. Fill in the column {label!r}, from the top; then run "
        f"`assay calibrate {out} --label {label}{named} --run {run}`.",
    )
