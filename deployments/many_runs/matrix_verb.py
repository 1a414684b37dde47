"""`assay run --matrix`: evaluate every combination of the values of some axes, and compare the runs."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from deployments.cli._support.console import stderr
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.options import Json, make_configuration, options_except, with_parameters
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.verb import VerbGroup
from deployments.cli.run import load_models, open_judges
from deployments.local_server import start_server, use_server
from deployments.many_runs.compare_verb import print_many
from deployments.many_runs.matrix import fill, read_axes
from flows.planning.planner import plan_run
from metric_core.errors import FailedCellsError
from tasks.comparison.run_pair import Matching
from tasks.many_runs.compared_runs import compare_many
from tasks.many_runs.many_page import many_page
from tasks.runtime.atomic_files import write_output
from tasks.runtime.home import assay_home
from tasks.runtime.start_up import gc_paused
from tasks.runtime.wording import shorten_path

app = VerbGroup()

PAGE = "comparison.html"
"""Name of the page beside the run folders."""

_EXAMPLES = """Examples:

\b
assay run --matrix matrix.toml
assay run --matrix matrix.toml --limit 20 --out runs/trial
"""

Matrix = Annotated[
    Path, typer.Option("--matrix", metavar="FILE", help="Configuration with a table [axes]; its texts hold {axis}.")
]


def run(given: dict[str, Any], matrix: Matrix, as_json: Json = False) -> None:
    """Evaluate every combination of the values of the axes, and compare the runs."""
    combinations = read_axes(matrix)
    make = partial(make_configuration, None, matrix)
    filled = {name: partial(fill, values) for name, values in combinations.items()}
    out = Path(make(fill=next(iter(filled.values())), **given).out or f"runs/{matrix.stem}")
    configs = {name: make(fill=each, **{**given, "out": str(out / name)}) for name, each in filled.items()}
    plans = {name: plan_run(config) for name, config in configs.items()}
    starting = start_server(assay_home())
    set_log_levels(verbose=False)
    load_models(next(iter(plans.values())).models, starting)
    failed: list[FailedCellsError] = []
    with use_server(starting.wait()):
        with gc_paused():
            from flows.evaluate import evaluate_plan

        for number, (name, plan) in enumerate(plans.items(), start=1):
            stderr.print(f"run {number} of {len(plans)}: {name}")
            open_judges(plan)
            try:
                with nullcontext() if as_json else stage_progress(plan.metrics.stages):
                    evaluate_plan(plan)
            except FailedCellsError as error:
                stderr.print(f"warning: {error}", style="yellow")
                failed.append(error)
    many = compare_many([out / name for name in plans], Matching())
    write_output(out / PAGE, many_page(many), "the comparison")
    print_many(many, as_json)
    stderr.print(f"wrote {shorten_path(out / PAGE)}")
    if failed:
        raise failed[0]


app.command(epilog=_EXAMPLES)(with_parameters(run, options_except("source", "config"), dict))
