"""`assay monitor`: evaluate a source as a schedule does: compare, gate, accept or alert."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.options import Json, with_config_except
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.verb import VerbGroup
from deployments.cli.compare import GATE_CODES
from deployments.cli.run import Verbose, load_models, print_despite_failed_cells, print_evaluation
from deployments.local_server import start_server, use_server
from flows.alerting.alert import has_told
from flows.config.loading import InvalidOptionsError, reporting_options
from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from flows.planning.planner import plan_run
from metric_core.errors import AssayError, ConfigError
from tasks.options.option import find_secret_references
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_folder import COMPARISON
from tasks.runtime.home import assay_home

if TYPE_CHECKING:
    from flows.monitoring.chain_result import ChainResult

app = VerbGroup()

CODES = {
    "accepted": 0,
    "passed": 0,
    "worse": GATE_CODES["failed"],
    "recovering": GATE_CODES["inconclusive"],
} | GATE_CODES
"""Exit codes of the verdicts."""


def _report_refused(error: ConfigError) -> None:
    """Report a configuration that cannot be used, to the recipients that can be read from it."""
    if isinstance(error, InvalidOptionsError) and error.content is not None:
        _tell(reporting_options(error.content), error)
    else:
        error.add_note("no alert about this error was sent: the recipients in deploy.alerts cannot be read")


@app.command()
@with_config_except("out", "baseline", refused=_report_refused)
def monitor(config: RunConfig, as_json: Json = False, verbose: Verbose = False) -> None:
    """Evaluate as a schedule does: compare, gate, accept or alert.

    The run is compared with the accepted baseline of its evaluation and checked by deploy.gate; alerts, also about an
    error, go to the recipients in deploy.alerts. Exit codes: 0 nothing is wrong, 10 the gate failed or there is an
    alarm, 11 inconclusive, or an alarm that another good run ends.
    """
    set_log_levels(verbose)
    with print_despite_failed_cells(as_json, verbose), _reporting(config):
        config = config.model_copy(update={"out": None, "baseline": None})
        plan = plan_run(config)
        starting = start_server(assay_home())
        load_models(plan.models, starting)
        with use_server(starting.wait()), nullcontext() if as_json else stage_progress(plan.metrics.stages):
            from flows.monitor import monitor_plan

            done = monitor_plan(plan)
    _print(done, as_json, verbose)
    raise typer.Exit(CODES[done.verdict])


@contextmanager
def _reporting(options: MonitoringOptions) -> Iterator[None]:
    """Report an error in the block, unless the run that it ends has reported it."""
    try:
        yield
    except Exception as error:
        if not has_told(error):  # the run did not begin
            _tell(options, error)
        raise


def _tell(options: MonitoringOptions, error: Exception) -> None:
    """Report an error before the run; only blocks need a Prefect server, which may be down."""
    set_log_levels(verbose=False)
    with ExitStack() as stack:
        alerts = options.deploy.alerts
        if alerts.block is not None or any(each.startswith("block:") for each in find_secret_references(alerts)):
            with suppress(AssayError):
                stack.enter_context(use_server(start_server(assay_home()).wait()))
        from flows.monitoring.monitored_run import MonitoredRun
        from flows.monitoring.reporter import Reporter

        Reporter(options=options, monitored_run=MonitoredRun.now(options, "manual")).report_error(error)


def _print(done: "ChainResult", as_json: bool, verbose: bool) -> None:
    from flows.evaluate import Evaluation

    outcome = None if done.folder is None else read_outcome(done.folder)
    if as_json:
        content = {} if outcome is None else outcome.model_dump(mode="json")
        folder = None if done.folder is None else str(done.folder)
        stdout.print_json(json.dumps({**content, "verdict": done.verdict, "message": done.message, "folder": folder}))
        return
    for sentence in done.undelivered:
        stderr.print(f"not delivered: {sentence}", style="yellow")
    if done.folder is not None:
        print_evaluation(Evaluation.from_folder(done.folder), as_json=False, verbose=verbose)
        if (page := done.folder / COMPARISON).exists():
            stdout.print(f"comparison: {page}")
    console = stdout if CODES[done.verdict] == 0 else stderr
    console.print(done.message)
