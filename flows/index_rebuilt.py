"""The flow `index-rebuilt`: evaluate a new version of an index, and accept it if it passes the gate.

The judge is asked only about what has changed since earlier versions, because answers and stage tables are cached. The
first version of an index becomes its baseline. A later one is accepted if the gate passes; otherwise the baseline
stays, an alert says what got worse, and the flow run fails or is inconclusive. An older version never replaces a newer
one: this is checked before the evaluation, and again before the version is accepted. Each deployment has baselines of
its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas import State
from prefect.logging import get_run_logger
from prefect.runtime import deployment, flow_run
from prefect.states import Completed, Failed

from flows.compare import ARTIFACT
from flows.config.deploy_options import default_gate
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.gated_comparison import CompareOptions, compare_runs
from flows.execution.run_subject import RunSubject, name_index_run
from flows.index_events.debounce import claim_newest
from flows.index_events.index_event import FROM_INDEX, ArrivedEvent, IndexRebuilt
from flows.monitoring.alerts import Alert, link_to, send, show_value
from metric_core.errors import AssayError, ConfigError, FailedCellsError
from metric_core.gates.rules import Outcome
from metric_core.statistics.comparison import ChangeOutcome
from tasks.comparison.run_comparison import RunComparison
from tasks.prefect_support.patience import crash_without_server, is_unavailable, wait_for_server
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.comparison.comparison_text import comparison_markdown
from tasks.reports.comparison.comparison_words import format_interval, numbers, title
from tasks.runs.baselines import DEFAULT_DEPLOYMENT, Baseline, Baselines
from tasks.runs.run_folder import COMPARISON, REPORT


@flow(name="index-rebuilt", flow_run_name=name_index_run, persist_result=False, validate_parameters=True)
@crash_without_server
def index_rebuilt(  # noqa: PLR0913, PLR0917 the fields of a form that people fill in
    config: RunConfig,
    index: str = "",
    version: str = "",
    dataset: str = "",
    announced: str = "",
    event: dict[str, Any] | str | None = None,
) -> State[dict[str, Any]]:
    """Evaluate a new version of an index, and accept it as the baseline if the gate passes.

    Args:
        config: Configuration of the evaluation; its `deploy` has the gate, the baselines and the recipients of alerts.
        index: Id of the index.
        version: Its version.
        dataset: Source of its new responses and contexts.
        announced: Time of the announcement, in ISO 8601; default now.
        event: The event, with the fields of its payload as they were sent, which replace the parameters above. None
            for a run that was started by hand; triggers of earlier releases pass only its id.

    Returns:
        A state named Accepted, Superseded, Inconclusive, or Failed.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    payload: dict[str, Any] = {"index": index, "version": version, "dataset": dataset}
    with _alert_on_error(config, payload):
        rebuilt = _newest_version(config, payload, announced, event)
        payload.update(rebuilt.payload)
        baselines = Baselines(config.deploy.baselines, _deployment_name())
        before = baselines.current(rebuilt.index)
        if before is not None and before.place.is_newer_than(rebuilt.place):
            return _report_superseded(rebuilt, before)
        folder = _evaluate(config, rebuilt, None if before is None else baselines.run_folder(before))
        before = baselines.current(rebuilt.index)  # another version may have been accepted meanwhile
        if before is None:
            return _accept(baselines, _baseline(rebuilt, folder, "first"), "it is the first version")
        if before.place.is_newer_than(rebuilt.place):
            return _report_superseded(rebuilt, before)
        comparison = _compare(config, rebuilt, (baselines.run_folder(before), folder))
        if comparison.gate is None or comparison.gate.outcome is Outcome.PASSED:
            why = f"it passed the gate against version {before.version}"
            return _accept(baselines, _baseline(rebuilt, folder, "passed"), why)
        return _refuse(config, rebuilt, before.version, comparison)


def _newest_version(
    config: RunConfig, payload: dict[str, Any], announced: str, parameter: Mapping[str, Any] | str | None
) -> IndexRebuilt:
    """Return the version to evaluate; for a run that an event started, the newest waiting version."""
    if not isinstance(parameter, Mapping):
        newest = IndexRebuilt.from_payload(payload, _time(announced))
    else:
        event = ArrivedEvent.from_parameter(parameter)
        payload.update(event.payload)
        quiet, longest = (
            timedelta(seconds=each) for each in (config.deploy.debounce_seconds, config.deploy.longest_wait)
        )
        newest = claim_newest(event, quiet, longest)
        if newest.payload != event.rebuilt().payload:
            get_run_logger().info("evaluating version %s instead of %r", newest.version, payload["version"])
    if newest.dataset == FROM_INDEX and config.retriever is None:
        raise ConfigError(
            f"the event says that contexts are to be fetched from the index ({FROM_INDEX}), but this deployment has no "
            "retriever; set one in its configuration, or announce a dataset"
        )
    return newest


def _deployment_name() -> str:
    return wait_for_server(lambda: deployment.name) or DEFAULT_DEPLOYMENT


def _time(announced: str) -> datetime:
    if not announced:
        return datetime.now(UTC)
    try:
        time = datetime.fromisoformat(announced)
    except ValueError as error:
        raise ConfigError(f"announced must be a time such as 2026-11-21T06:00:00Z, got {announced!r}") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _evaluate(config: RunConfig, rebuilt: IndexRebuilt, baseline: Path | None) -> Path:
    changes: dict[str, Any] = {"baseline": None if baseline is None else str(baseline), "out": None}
    if rebuilt.dataset != FROM_INDEX:
        changes |= {"source": rebuilt.dataset, "retriever": None}
    done = run_evaluation(config.model_copy(update=changes), index=rebuilt.index, version=rebuilt.version)
    return Path(done.folder)


def _compare(config: RunConfig, rebuilt: IndexRebuilt, folders: tuple[Path, Path]) -> RunComparison:
    """Check a run against the baseline by the gate, and write the comparison page to the run folder."""
    comparison = compare_runs(*folders, CompareOptions(gate=config.deploy.gate or default_gate()))
    (folders[1] / COMPARISON).write_text(comparison_page(comparison), encoding="utf-8", errors="replace")
    subject = RunSubject.of_run(rebuilt.index, rebuilt.version)
    text = comparison_markdown(comparison)
    if config.deploy.alerts.link is not None:
        text = f"[Comparison page]({link_to(folders[1], COMPARISON, config.deploy.alerts)})\n\n{text}"
    about = subject.describe("Compared with its baseline")
    create_markdown_artifact(text, key=subject.key(ARTIFACT), description=about)
    return comparison


def _refuse(
    config: RunConfig, rebuilt: IndexRebuilt, baseline: str, comparison: RunComparison
) -> State[dict[str, Any]]:
    folder = Path(comparison.b.folder)
    has_failed = comparison.gate is not None and comparison.gate.outcome is Outcome.FAILED
    alert = Alert(
        index=rebuilt.index,
        version=rebuilt.version,
        outcome="failed" if has_failed else "inconclusive",
        worse=tuple(_describe_worse(comparison)),
        baseline=baseline,
        folder=str(folder),
        report=link_to(folder, COMPARISON, config.deploy.alerts),
        flow_run=str(flow_run.id),
    )
    send(alert, config.deploy.alerts)
    result = {**rebuilt.payload, "accepted": False, "folder": str(folder), "baseline": baseline}
    if has_failed:
        return Failed(message=alert.text, data=result)
    return Completed(name="Inconclusive", message=alert.text, data=result)


def _accept(baselines: Baselines, baseline: Baseline, why: str) -> State[dict[str, Any]]:
    result = {"index": baseline.index, "version": baseline.version, "folder": baseline.folder}
    if not baselines.accept(baseline):
        newer = baselines.current(baseline.index)
        version = "a newer version" if newer is None else f"version {newer.version}, which is newer,"
        message = f"version {baseline.version} is not accepted: {version} was accepted meanwhile"
        return Completed(name="Superseded", message=message, data={**result, "accepted": False})
    message = f"version {baseline.version} is now the baseline of index {baseline.index}: {why}"
    return Completed(name="Accepted", message=message, data={**result, "accepted": True})


def _baseline(rebuilt: IndexRebuilt, folder: Path, why: Literal["first", "passed"]) -> Baseline:
    return Baseline(
        index=rebuilt.index,
        version=rebuilt.version,
        announced=rebuilt.announced,
        run_id=str(flow_run.id),
        folder=str(folder),
        dataset=rebuilt.dataset,
        accepted=datetime.now(UTC),
        why=why,
    )


def _report_superseded(rebuilt: IndexRebuilt, newer: Baseline) -> State[dict[str, Any]]:
    message = f"version {rebuilt.version} of index {rebuilt.index} is older than its baseline, version {newer.version}"
    result = {**rebuilt.payload, "accepted": False, "baseline": newer.version}
    return Completed(name="Superseded", message=message, data=result)


def _describe_worse(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence for each check that did not pass and each metric that is significantly worse."""
    for check in comparison.gate.checks if comparison.gate else ():
        if check.outcome is not Outcome.PASSED:
            observed = "nothing" if check.observed is None else f"{check.observed:.3f}"
            interval = f" ({format_interval(check.interval)})" if check.interval else ""
            yield f"{check.subject}: {check.rule}, observed {observed}{interval} over {check.rows} rows: {check.reason}"
    for metric in comparison.metrics:
        if metric.verdict is ChangeOutcome.WORSE:
            before, after, change, interval, *_ = numbers(metric)
            yield f"{title(metric)}: from {before} to {after} ({change}, {interval})"


@contextmanager
def _alert_on_error(config: RunConfig, payload: Mapping[str, Any]) -> Iterator[None]:
    """Send an alert about an error in the block, and raise the error again."""
    try:
        yield
    except Exception as error:
        # An AssayError is written for users; other messages may contain secrets, so only their type is sent.
        if is_unavailable(error):  # the run is resumed, and its alert could not be sent anyway
            raise
        reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the log of the run has more"
        _alert(config, payload, reason, Path(error.folder) if isinstance(error, FailedCellsError) else None)
        raise


def _alert(config: RunConfig, payload: Mapping[str, Any], reason: str, folder: Path | None = None) -> None:
    """Send an alert about a version that could not be evaluated, with its run folder if there is one."""
    alert = Alert(
        index=show_value(payload.get("index")),
        version=show_value(payload.get("version")),
        outcome="error",
        worse=(reason,),
        folder=None if folder is None else str(folder),
        report=None if folder is None else link_to(folder, REPORT, config.deploy.alerts),
        flow_run=str(flow_run.id),
    )
    send(alert, config.deploy.alerts)
