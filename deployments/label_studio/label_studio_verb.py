"""`assay label-studio`: write tasks for Label Studio, and read the labels that were given there."""

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
from tasks.calibration.label_sampling import USUAL_BUDGET, SampleOptions, draw_sample
from tasks.label_studio.label_tasks import read_labels, write_labels, write_tasks
from tasks.reports.labels.label_page import LabelPage, question_of
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.wording import shorten_path

app = VerbGroup(no_args_is_help=True)


@app.callback()
def label_studio() -> None:
    """Label rows or claims of a run in Label Studio."""


@app.command("tasks")
def write(
    run: RunFolder,
    metric: Annotated[str, typer.Option("--metric", "-m", help="Metric that the labels are about.")],
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", "-n", min=1, help=f"Number of rows or claims to draw. Default: {USUAL_BUDGET}, or all of fewer."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File of the tasks.")] = Path("tasks.json"),
    claims: Annotated[bool, typer.Option("--claims", help="Label single claims or passages.")] = False,
    active: Annotated[bool, typer.Option("--active", help="Draw more where the judge is unsure.")] = False,
    by: Annotated[str | None, typer.Option("--by", help="Column of groups, of each of which one row is drawn.")] = None,
    ask: Annotated[
        str | None, typer.Option("--ask", help="Question about each row. Default: that of the metric.")
    ] = None,
    span: Range = None,
    seed: Annotated[int | None, seed_option("ASSAY_LABEL_SEED")] = None,
) -> None:
    """Draw rows or claims of a run, and write them as tasks of Label Studio, with a labelling interface."""
    if out.exists():
        raise ConfigError(f"{out} already exists, and may be the tasks of labels. Name another file with --out")
    finished = FinishedRun(run)
    options = SampleOptions(
        metric=metric,
        budget=budget,
        is_claims=claims,
        by=by,
        is_active=active,
        seed=SEED if seed is None else seed,
    )
    sample = draw_sample(finished, options)
    interface = write_tasks(
        finished, sample, LabelPage(metric, ask or question_of(finished, metric), parse_span(span)), out
    )
    stdout.print(
        f"wrote {len(sample.items):,} tasks to {shorten_path(out)}, their interface to {shorten_path(interface)}"
    )
    stderr.print(
        "import the tasks into a project with this interface, export them as JSON, then run "
        f"`assay label-studio labels {out} EXPORT`"
    )


@app.command("labels")
def read(
    tasks: Annotated[Path, typer.Argument(metavar="TASKS", help="The tasks, as they were written.")],
    exports: Annotated[list[Path], typer.Argument(metavar="EXPORT...", help="Files that were exported as JSON.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File of the labels.")] = Path(
        "labels.jsonl"
    ),
) -> None:
    """Write the labels in exports of Label Studio as a file that `assay label --import` reads."""
    found = read_labels(tasks, exports)
    write_labels(found, out)
    by = ", ".join(f"{name} ({count:,})" for name, count in found.people.items()) or "nobody"
    stdout.print(f"wrote the labels of {by}, of {found.of:,} tasks, to {shorten_path(out)}")
    metric = found.lines[0]["metric"] if found.lines else "METRIC"
    stderr.print(f"next: `assay label RUN --metric {metric} --import {out}`")
