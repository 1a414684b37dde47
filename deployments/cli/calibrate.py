"""`assay calibrate`: compare a judge with human labels."""

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.options import Json, seed_option, with_config_except
from deployments.cli._support.print_document import print_table
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.verb import VerbGroup
from deployments.cli.run import Verbose, load_models
from deployments.local_server import start_server, use_server
from flows.config.calibration_request import CalibrationRequest
from flows.config.run_config import RunConfig
from flows.planning.planner import plan_run
from metric_core.errors import ConfigError
from tasks.calibration.calibration_files import load_saved
from tasks.documents.blocks import make_table
from tasks.documents.calibration.calibration_text import (
    annotator_lines,
    count_line,
    figure_table,
    reach_lines,
    result_lines,
    saved_line,
)
from tasks.documents.calibration.cascade_text import sureness_lines
from tasks.runtime.home import assay_home

if TYPE_CHECKING:
    from flows.calibrate import CalibrationResult
    from flows.compare_judges import JudgesResult

app = VerbGroup()

_STORED_LABEL = "people"
"""Name of labels that come from no column."""

Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        envvar="ASSAY_CALIBRATE_LABEL",
        help="Column with the human labels. With --run and without it, those that `assay label` has imported are used.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        "-m",
        envvar="ASSAY_CALIBRATE_METRIC",
        help="Metric that the labels are about. Default: the metric that the label column is named after.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        envvar="ASSAY_CALIBRATE_POSITIVE",
        help="Label that means yes, if it is not 1, yes or true; all others mean no.",
    ),
]
Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        envvar="ASSAY_CALIBRATE_RANGE",
        metavar="LOW,HIGH",
        help="Lowest and highest grade. Default: the range of the metric, if it contains all grades.",
    ),
]
Sampling = Annotated[
    str | None,
    typer.Option(
        "--sampling",
        envvar="ASSAY_CALIBRATE_SAMPLING",
        metavar="random|unknown|COLUMN",
        help="random: the labelled rows are a random sample of all rows. COLUMN: it holds the probability with which "
        "each row was drawn. Default: the column label_probability, if there is one; else unknown.",
    ),
]
Run = Annotated[
    str | None,
    typer.Option(
        "--run",
        envvar="ASSAY_CALIBRATE_RUN",
        metavar="RUN",
        help="Finished run whose rows the labels are about. Its scores are used, and no judge is asked.",
    ),
]
Judges = Annotated[
    str | None,
    typer.Option(
        "--judges",
        envvar="ASSAY_CALIBRATE_JUDGES",
        metavar="JUDGE,...",
        help="Compare these judges on the labels: builtin, URLs, plugins, or configuration files with a [judge].",
    ),
]
Seed = Annotated[int | None, seed_option("ASSAY_CALIBRATE_SEED")]
Replace = Annotated[
    bool,
    typer.Option(
        "--replace",
        envvar="ASSAY_CALIBRATE_REPLACE",
        help="Replace a saved calibration, or labels of --run, even by one with fewer labels.",
    ),
]
Keep = Annotated[
    bool,
    typer.Option(
        "--keep/--no-keep",
        envvar="ASSAY_CALIBRATE_KEEP",
        help="Save the calibration in ASSAY_HOME, so that later runs of this judge report its agreement with people.",
    ),
]


def _list_saved(wanted: bool) -> None:
    """Print the saved calibrations, and end the command."""
    if not wanted:
        return

    saved = load_saved()
    for found in saved:
        stdout.print(saved_line(found))
    if not saved:
        stdout.print("no calibration is saved")
    raise typer.Exit


ListSaved = Annotated[
    bool,
    typer.Option(
        "--list",
        callback=_list_saved,
        is_eager=True,
        help="Show the saved calibrations, newest first, with those that later ones have replaced, and exit.",
    ),
]


@app.command()
@with_config_except("metrics", "baseline", "explain", "name", "system_version", "history", "history_page")
def calibrate(
    config: RunConfig,
    context: typer.Context,
    label: Label = None,
    metric: Metric = None,
    positive: Positive = None,
    span: Range = None,
    sampling: Sampling = None,
    run: Run = None,
    judges: Judges = None,
    seed: Seed = None,
    keep: Keep = True,
    replace: Replace = False,
    _list: ListSaved = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure the agreement of a judge with human labels."""
    if label is None:
        if run is None or context.params["source"] is not None:
            raise ConfigError("--label names the column with the labels; with --run and no SOURCE it can be left out")
        config = config.model_copy(update={"source": None})
    options: dict[str, Any] = {"label": label or _STORED_LABEL, "metric": metric, "positive": positive, "keep": keep}
    options |= {"span": parse_span(span), "sampling": sampling, "run": run, "replace": replace}
    options |= {} if seed is None else {"seed": seed}
    if judges is not None and (run is not None or replace):
        raise ConfigError(
            "--judges asks judges about the labelled rows and saves nothing; leave --run and --replace out"
        )

    request = CalibrationRequest(config=config, **options)
    if judges is not None:
        _compare(request, judges, verbose, as_json)
        return
    if run is None:
        result = _run_calibration(request, verbose, as_json)
    else:
        from flows.calibrate import calibrate_run

        result = calibrate_run(request)
    if as_json:
        content = result.calibration.model_dump(mode="json")
        corrected = None if result.corrected is None else result.corrected.to_json()
        facts = {"folder": result.folder, "kept": result.kept, "corrected": corrected}
        stdout.print_json(json.dumps({**facts, "needed": result.needed, **content}))
    else:
        _print(result)


def _compare(request: CalibrationRequest, judges: str, verbose: bool, as_json: bool) -> None:
    set_log_levels(verbose)
    from flows.calibrate import prepare_calibration
    from flows.compare_judges import compare_candidates, comparison_content, parse_candidates

    candidates = parse_candidates(judges, request.config.prices)
    ready = prepare_calibration(request)
    plan = plan_run(ready.config)
    starting = start_server(assay_home())
    load_models(plan.models, starting)

    def tell(name: str, number: int) -> None:
        if not as_json:
            stderr.print(f"judge {number} of {len(candidates)}: {name}")

    with use_server(starting.wait()):
        result = compare_candidates(request, candidates, tell)
    if as_json:
        stdout.print_json(json.dumps(comparison_content(result)))
    else:
        _print_comparison(result)


def _print_comparison(result: "JudgesResult") -> None:
    title = f"{result.metric}: judges compared on {result.rows:,} labelled rows that all of them scored"
    stdout.print(title, style="bold")
    rows = []
    for judge in result.judges:
        cost = result.costs[judge.name]
        price = f"{cost.money:.4g} {cost.currency}" if cost.money else _tokens(cost.tokens)
        seconds = "not asked" if cost.seconds is None else f"{cost.seconds:.3f}"
        interval = judge.interval
        reach = "too few rows" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"
        agreement = "unknown" if judge.agreement is None else f"{judge.agreement:.3f}"
        rows.append((judge.name, agreement, reach, price, seconds))
    print_table(stdout, make_table(("judge", "agreement", "95 % interval", "per 1,000 rows", "s a question"), rows))


def _tokens(tokens: float | None) -> str:
    return "all cached" if tokens is None else f"{tokens:,.0f} tokens" if tokens else "this process"


def _run_calibration(request: CalibrationRequest, verbose: bool, quiet: bool) -> "CalibrationResult":
    set_log_levels(verbose)
    from flows.calibrate import calibrate_plan, prepare_calibration

    ready = prepare_calibration(request)
    plan = plan_run(ready.config)
    starting = start_server(assay_home())
    load_models(plan.models, starting)
    progress = nullcontext() if quiet else stage_progress(plan.metrics.stages)
    with use_server(starting.wait()), progress:
        return calibrate_plan(ready, plan)


def parse_span(text: str | None) -> tuple[float, float] | None:
    """Return the lowest and the highest grade of the option --range.

    Raises:
        ConfigError: The text has another form.
    """
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--range must be the lowest and the highest grade, such as 1,5; got {text!r}") from error
    if not low < high:
        raise ConfigError(f"--range must have the lowest grade first, such as 1,5; got {text!r}")
    return low, high


def _print(result: "CalibrationResult") -> None:
    calibration = result.calibration
    for warning in (*calibration.warnings, *result.warnings):
        stderr.print(f"warning: {warning}", style="yellow")
    title = f"{calibration.metric} compared with {calibration.label!r} of {calibration.source}"
    stdout.print(title, style="bold")
    stdout.print(f"judge: {calibration.judge}")
    stdout.print(count_line(calibration))
    print_table(stdout, figure_table(calibration))
    results = result_lines(result.calibration.metric, result.corrected, result.needed)
    for line in [
        *annotator_lines(calibration),
        *reach_lines(calibration),
        *sureness_lines(calibration),
        *results,
    ]:
        stdout.print(line)
    stdout.print(f"run folder: {result.folder}")
    if result.kept is not None:
        stdout.print(f"saved: {result.kept}")
