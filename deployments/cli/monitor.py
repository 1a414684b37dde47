"""`assay monitor`: evaluate a source as a schedule does: compare, gate, accept or alert."""

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import Json, with_config_except
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli.compare import GATE_CODES
from deployments.cli.run import Verbose, load_models, print_despite_failed_cells, print_evaluation, set_log_levels
from deployments.local_server import start_server, use_server

if TYPE_CHECKING:
    from flows.config.run_config import RunConfig
    from flows.monitoring.chain import ChainResult

CODES = {"accepted": 0, "passed": 0, "superseded": 0, "worse": GATE_CODES["failed"]} | GATE_CODES
"""Exit codes of the verdicts."""


@with_config_except("out", "baseline")
def monitor(config: "RunConfig", as_json: Json = False, verbose: Verbose = False) -> None:
    """Evaluate as a schedule does: compare, gate, accept or alert.

    The run is compared with the accepted baseline of its evaluation and checked by deploy.gate; people are told as
    deploy.alerts says. Exit codes: 0 nothing is wrong, 10 the gate failed or an alarm stands, 11 inconclusive.
    """
    with print_despite_failed_cells(as_json):
        done = _monitor(config, verbose, quiet=as_json)
    _print(done, as_json)
    raise typer.Exit(CODES[done.verdict])


def _monitor(config: "RunConfig", verbose: bool, quiet: bool) -> "ChainResult":
    from flows.execution.run_checks import check_run  # noqa: PLC0415
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    plan = check_run(config)
    starting = start_server(assay_home())
    set_log_levels(verbose)
    load_models(config, starting)
    with use_server(starting.wait()), nullcontext() if quiet else stage_progress(plan.stages):
        from flows.monitor import run_monitor  # noqa: PLC0415 Prefect reads its settings when it is imported

        return run_monitor(config)


def _print(done: "ChainResult", as_json: bool) -> None:
    from flows.evaluate import Evaluation  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.runs.outcome import read_outcome  # noqa: PLC0415
    from tasks.runs.run_folder import COMPARISON  # noqa: PLC0415

    outcome = None if done.folder is None else read_outcome(done.folder)
    if as_json:
        content = {} if outcome is None else outcome.model_dump(mode="json")
        folder = None if done.folder is None else str(done.folder)
        stdout.print_json(json.dumps({**content, "verdict": done.verdict, "message": done.message, "folder": folder}))
        return
    if done.folder is not None:
        print_evaluation(Evaluation.from_folder(done.folder), as_json=False)
        if (page := done.folder / COMPARISON).exists():
            stdout.print(f"comparison: {page}", markup=False, soft_wrap=True)
    console = stdout if CODES[done.verdict] == 0 else stderr
    console.print(done.message, markup=False, soft_wrap=True)
