"""`assay label`: draw rows or claims of a run for people to label, and import their labels."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import seed_option
from deployments.cli._support.verb import VerbGroup
from deployments.cli.calibrate import Range, parse_span
from deployments.cli.report import RunFolder
from metric_core.errors import ConfigError
from metric_core.statistics.resampling import SEED
from tasks.calibration.label_imports import ImportedLabels, draw_disagreements, given_labels, import_labels
from tasks.calibration.label_sampling import USUAL_BUDGET, DrawnSample, SampleOptions, draw_sample, sample_table
from tasks.calibration.run_labels import Disagreement
from tasks.reports.exports.score_tables import guess_format, write_export
from tasks.reports.exports.scored_rows import is_judged
from tasks.reports.labels.label_page import LabelPage, question_of, write_label_page
from tasks.runs.finished_run import FinishedRun

app = VerbGroup()

_PAGE = ".html"


@app.command()
def label(
    run: RunFolder,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", "-m", help="Metric that the labels are about. Default: the run's first one that asks a judge."
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", "-n", min=1, help=f"Number of rows or claims to draw. Default: {USUAL_BUDGET}, or all of fewer."
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Page to write (.html), or a table of rows to fill in (.csv, .jsonl or .parquet).",
        ),
    ] = Path("label.html"),
    claims: Annotated[
        bool,
        typer.Option("--claims", help="Label single claims or passages, whose verdicts the metric is the mean of."),
    ] = False,
    active: Annotated[
        bool, typer.Option("--active", help="Draw more where the judge is unsure, or the judges of a panel disagree.")
    ] = False,
    surest: Annotated[
        bool,
        typer.Option("--surest", help="Draw from the verdicts that the cheaper judge of a cascade is surest of."),
    ] = False,
    strata: Annotated[
        int | None,
        typer.Option(
            "--strata",
            min=2,
            max=20,
            help="Number of equal parts of the metric's range to draw from, more rows where labels are uncertain.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Column that groups rows: at most one row of each group is drawn.")
    ] = None,
    disagreement: Annotated[
        Disagreement | None,
        typer.Option(
            "--disagreement",
            help="Instead of drawing: what people, judges, or judge and people disagree on, or a cascade is unsure of.",
        ),
    ] = None,
    ask: Annotated[
        str | None, typer.Option("--ask", help="Question about each row. Default: that of the metric.")
    ] = None,
    span: Range = None,
    annotators: Annotated[
        int, typer.Option("--annotators", min=1, max=20, help="Number of pages, among which the rows are divided.")
    ] = 1,
    overlap: Annotated[int, typer.Option("--overlap", min=0, help="Number of rows that are on every page.")] = 30,
    column: Annotated[str, typer.Option("--label", help="Name of the empty column of a table.")] = "label",
    imported: Annotated[
        list[Path] | None,
        typer.Option("--import", metavar="FILE", help="Import labels that a page has exported. Repeatable."),
    ] = None,
    seed: Annotated[int | None, seed_option("ASSAY_LABEL_SEED")] = None,
) -> None:
    """Draw rows or claims for people to label, or import labels."""
    finished = FinishedRun(run)
    metric = metric or _first_judged(finished)
    if imported:
        _print_imported(run, metric, import_labels(finished, metric, imported))
        return
    if disagreement is None:
        options = SampleOptions(
            metric=metric,
            budget=budget,
            is_claims=claims,
            by=by,
            strata=strata,
            is_active=active,
            is_surest=surest,
            seed=SEED if seed is None else seed,
        )
        sample = draw_sample(finished, options)
    else:
        sample = draw_disagreements(finished, metric, disagreement, budget or USUAL_BUDGET, is_claims=claims)
    if out.suffix.lower() != _PAGE:
        _write_table(finished, sample, metric, out, column)
        return
    is_final = disagreement is Disagreement.PEOPLE
    page = LabelPage(
        metric=metric,
        ask=ask or question_of(finished, metric),
        span=parse_span(span),
        given=given_labels(sample.items) if is_final else {},
    )
    for number, part in enumerate(_divide(sample, annotators, overlap), start=1):
        path = out if annotators == 1 else out.with_stem(f"{out.stem}-{number}")
        _refuse_existing(path)
        write_label_page(finished, part, page, path)
        stdout.print(str(path.absolute()))
    stderr.print(
        "people open the page in a browser, label from the first on, and export; then run "
        f"`assay label {run} --metric {metric} --import FILE`"
    )


def _first_judged(run: FinishedRun) -> str:
    """Return the name of the first metric that asks a judge.

    Raises:
        ConfigError: The run has none.
    """
    for metric in run.record.metrics:
        if is_judged(metric):
            return metric.key
    raise ConfigError(f"no metric of {run.folder} asks a judge: name the metric that people shall judge with --metric")


def _write_table(run: FinishedRun, sample: DrawnSample, metric: str, out: Path, column: str) -> None:
    file_format = guess_format(out)
    _refuse_existing(out)
    if any(item.verdict is not None for item in sample.items):
        raise ConfigError(f"single claims are labelled on a page: name a file that ends in {_PAGE}, not {out}")
    table = sample_table(run, sample, column)
    write_export(table, out, file_format)
    stderr.print(
        f"wrote {table.num_rows} rows to {out}, in random order. Fill in the column {column!r}, from the top; then run "
        f"`assay calibrate {out} --label {column} --metric {metric} --run {run.folder}`.",
    )


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise ConfigError(f"{out} already exists, and may hold labels. Name another file with --out, or remove it.")


def _divide(sample: DrawnSample, pages: int, overlap: int) -> list[DrawnSample]:
    """Return the parts of a sample for several people, who share the first items."""
    if pages == 1:
        return [sample]
    found = []
    for page in range(pages):
        places = [place for place in range(len(sample.items)) if place < overlap or place % pages == page]
        found.append(
            replace(
                sample,
                items=tuple(sample.items[place] for place in places),
                probabilities=sample.probabilities and tuple(sample.probabilities[place] for place in places),
                strata=sample.strata and tuple(sample.strata[place] for place in places),
                whole=sample.digest,
            )
        )
    return found


def _print_imported(run: Path, metric: str, found: ImportedLabels) -> None:
    settled, what = found.known.settled, "claims" if found.is_claims else "rows"
    by = ", ".join(f"{name} ({len(labels):,})" for name, labels in settled.annotators.items())
    stdout.print(f"{len(found.known.by_key):,} {what} of {run} are labelled for {metric}, by {by or 'nobody'}")
    if settled.shared:
        alpha = "unknown: all labels are the same" if settled.alpha is None else f"{settled.alpha:.2f}"
        stdout.print(
            f"agreement on {settled.shared:,} {what} that several people labelled: Krippendorff's alpha {alpha}"
        )
    if settled.undecided:
        stdout.print(f"{settled.undecided:,} {what} that nobody could decide")
    if settled.contested:
        flag = " --claims" if found.is_claims else ""
        stdout.print(
            f"{len(settled.contested):,} {what} to settle: `assay label {run} --metric {metric}{flag} "
            "--disagreement people --out settle.html`"
        )
    else:
        stdout.print(f"next: `assay calibrate --run {run} --metric {metric}`")
