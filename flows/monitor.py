"""Define the flow `monitor`: evaluate a source as before, and send an alert if something is wrong.

It compares the run with the accepted baseline and applies the gate; see `flows.monitoring.chain`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from prefect import flow
from prefect.client.schemas import State
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from flows.evaluate import evaluate_plan, run_evaluation
from flows.execution.deployed_parameters import as_deployed
from flows.monitoring.chain import run_chain
from flows.monitoring.chain_result import ChainResult
from flows.monitoring.messages import Verdict
from flows.monitoring.missed_runs import SCHEDULED, STATE, end_overdue_runs
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.reporter import Reporter, explain_refusal, usable_options
from flows.planning.run_plan import RunPlan
from flows.publishing.run_subject import name_monitored_run
from flows.resume_crashed import find_given_up
from metric_core.errors import ConfigError
from tasks.options.narrow import narrow
from tasks.prefect_support.first_state import send_first_state
from tasks.prefect_support.flow_parameters import with_function
from tasks.prefect_support.lost_server import SERVER_GONE, outlive_server
from tasks.prefect_support.patience import crash_without_server, is_unavailable
from tasks.record.outcome import Trigger

_STATES: Mapping[Verdict, str] = {
    "accepted": "Accepted",
    "passed": "Passed",
    "inconclusive": "Inconclusive",
    "superseded": "Superseded",
    "failed": "Gate failed",
    "worse": "Worse",
    "recovering": "Recovering",
}
"""Names of the final states. An error is "Error", so that only a run that could not report its failure is "Failed"."""


Evaluate: TypeAlias = Callable[[MonitoredRun, Path | None], Path]
"""A function that evaluates the source, compared with the baseline in a folder, and returns the run folder."""


class BadVerdict(Exception):  # noqa: N818 nothing went wrong in the run
    """The result of a run that found something wrong: Prefect takes only exceptions as the data of a failed state."""

    def __init__(self, done: ChainResult) -> None:
        super().__init__(done.message)
        self.done = done


def _refuse(parameters: dict[str, Any], error: Exception) -> State[Any]:
    """End a run whose parameters cannot be used."""
    options = usable_options(parameters)
    reporter = Reporter(options=options, monitored_run=MonitoredRun.now(options, _find_trigger()))
    return _end(reporter, explain_refusal(parameters, error))


@flow(name="monitor", flow_run_name=name_monitored_run, persist_result=False, validate_parameters=False)
@crash_without_server
@as_deployed(refused=_refuse, is_monitored=True)
def monitor(config: RunConfig) -> State[Any]:
    """Evaluate a source, compare the run with the accepted baseline, apply the gate, and accept the run or alert.

    Args:
        config: Configuration of the run; its `deploy` has the gate, the baselines and the recipients of alerts.

    Returns:
        A state named Accepted, Passed, Inconclusive, Superseded, Gate failed, Worse, Recovering or Error.
    """
    return _monitor(narrow(config, MonitoringOptions), lambda *of: _evaluate(config, *of))


def _monitor(options: MonitoringOptions, evaluate: Evaluate) -> State[Any]:
    monitored_run = MonitoredRun.now(options, _find_trigger())
    reporter = Reporter(options=options, monitored_run=monitored_run)
    if (crashed := find_given_up()) is not None:
        return _end(reporter, crashed)
    try:
        if monitored_run.trigger == "schedule":
            context = FlowRunContext.get()
            if context is not None and context.flow_run is not None:
                send_first_state(context.flow_run)
            if ended := end_overdue_runs():
                get_run_logger().info("%d runs that were due meanwhile are ended as %s", ended, STATE)
        done = run_chain(reporter, monitored_run, lambda baseline: evaluate(monitored_run, baseline))
    except Exception as error:
        if is_unavailable(error):
            raise
        return _end(reporter, error)
    is_bad = done.verdict in ("failed", "worse")
    make, data = (Failed, BadVerdict(done)) if is_bad else (Completed, done)
    state: State[Any] = make(name=_STATES[done.verdict], message=done.message, data=data)
    return state


def run_monitor(config: RunConfig) -> ChainResult:
    """Run the flow `monitor`, and return its result.

    Raises:
        AssayError: The run could not be finished.
    """
    return _outlive(lambda: _result_of(monitor(config, return_state=True)))


def monitor_plan(plan: RunPlan) -> ChainResult:
    """Run the flow `monitor` by a plan that is made and checked.

    Args:
        plan: Plan of a run; the parameter of the flow run is its record.

    Raises:
        AssayError: The run could not be finished.
    """

    @crash_without_server
    def run(config: RunConfig) -> State[Any]:
        del config  # the plan of which is made
        return _monitor(plan.monitoring, lambda *of: Path(evaluate_plan(plan.with_options(**_outputs(*of))).folder))

    planned: Any = with_function(monitor, run)
    return _outlive(lambda: _result_of(planned(plan.record, return_state=True)))


def _outlive(run: Callable[[], ChainResult]) -> ChainResult:
    try:
        done, is_gone = outlive_server(run)
    except BadVerdict as bad:
        done, is_gone = bad.done, True
    return replace(done, message=f"{done.message}; {SERVER_GONE}") if is_gone else done


def _result_of(state: State[Any]) -> ChainResult:
    result: Any = state.result(raise_on_failure=False)
    if isinstance(result, BadVerdict):
        return result.done
    if isinstance(result, BaseException):
        raise result
    assert isinstance(result, ChainResult)  # noqa: S101 the data of every other state
    return result


def _end(reporter: Reporter, error: Exception) -> State[Any]:
    """Report an error that ended the run, and return the final state."""
    get_run_logger().error("the run could not be finished", exc_info=error)
    reporter.report_error(error)
    failed: State[Any] = Failed(name="Error", message=str(error) or type(error).__name__, data=error)
    return failed


def _find_trigger() -> Trigger:
    return "schedule" if SCHEDULED in (flow_run.tags or ()) else "manual"


def _evaluate(config: RunConfig, monitored_run: MonitoredRun, baseline: Path | None) -> Path:
    if config.source is None:
        raise ConfigError("a monitored run needs data to evaluate: name a source in the configuration")
    return Path(run_evaluation(config.model_copy(update=_outputs(monitored_run, baseline))).folder)


def _outputs(monitored_run: MonitoredRun, baseline: Path | None) -> dict[str, Any]:
    """Return the options of outputs with which a monitored run is evaluated, in a folder of its own."""
    return {"baseline": None if baseline is None else str(baseline), "out": None, "name": monitored_run.name}
