"""The flow `index-rebuilt`: a new version of an index is evaluated, held against the accepted one, and accepted or not.

Only what has changed since earlier versions is asked of the judge, because answers and stage tables are kept. The first
version of an index becomes its baseline. A later one is accepted if the gate passes; otherwise the baseline stays, an
alert says what got worse, and the flow run fails. An older version never takes the place of a newer one: that is looked
at before anything is evaluated, and again before it is accepted.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas import State
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.compare import ARTIFACT
from flows.config.deploy_options import default_gate
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.gated_comparison import CompareOptions, compare_runs
from flows.index_events.alerts import Alert, link_to, send
from flows.index_events.debounce import claim_newest
from flows.index_events.index_event import FROM_INDEX, IndexRebuilt
from metric_core.errors import AssayError, ConfigError
from metric_core.gates.rules import Outcome
from metric_core.statistics.comparison import ChangeOutcome
from tasks.comparison.run_comparison import RunComparison
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.comparison.comparison_text import comparison_markdown
from tasks.reports.comparison.comparison_words import format_interval, numbers, title
from tasks.runs.baselines import Baseline, Baselines

COMPARISON = "comparison.html"
"""The page in the run folder that shows what has changed since the baseline."""

_LOOK_BACK = timedelta(hours=1)
"""Extra age of an event that is still considered, because runs wait for each other."""


@flow(name="index-rebuilt", persist_result=False, validate_parameters=True)
def index_rebuilt(  # noqa: PLR0913, PLR0917 they are what a person fills in
    config: RunConfig, index: str = "", version: str = "", dataset: str = "", announced: str = "", event: str = ""
) -> State[dict[str, Any]]:
    """Evaluate a new version of an index, and accept it as the baseline if the gate passes.

    Args:
        config: Configuration of the evaluation; its `deploy` has the gate, the baselines and the recipients of alerts.
        index: Id of the index.
        version: Its version.
        dataset: Source of its fresh responses and contexts.
        announced: Time of the announcement; default now.
        event: Id of the event; empty for a run that was started by hand.

    Returns:
        A state named Accepted, Superseded, Inconclusive, or Failed.

    Raises:
        AssayError: Anything that the user can put right; the message says how.
    """
    said = {"index": index, "version": version, "dataset": dataset}
    with _alert_on_error(config, said):
        rebuilt = _newest_version(config, said, announced, event)
        if rebuilt is None:
            return _is_claimed_elsewhere(said)
        said.update(rebuilt.payload)
        baselines = Baselines(config.deploy.baselines)
        before = baselines.current(rebuilt.index)
        if before is not None and before.place.is_newer_than(rebuilt.place):
            return _report_superseded(rebuilt, before)
        folder = _evaluate(config, rebuilt, None if before is None else baselines.run_folder(before))
        before = baselines.current(rebuilt.index)  # another version may have been accepted meanwhile
        if before is None:
            return _accept(baselines, _baseline(rebuilt, folder, "first"), "it is the first of its index")
        if before.place.is_newer_than(rebuilt.place):
            return _report_superseded(rebuilt, before)
        found = _compare(config, rebuilt, (baselines.run_folder(before), folder))
        if found.gate is None or found.gate.outcome is Outcome.PASSED:
            why = f"the gate passed beside version {before.version}"
            return _accept(baselines, _baseline(rebuilt, folder, "passed"), why)
        return _refuse(config, rebuilt, before.version, found)


def _newest_version(config: RunConfig, said: Mapping[str, str], announced: str, event: str) -> IndexRebuilt | None:
    """Return the version to evaluate; for a run that an event started, the newest waiting version, if any."""
    when = _time(announced)
    found = IndexRebuilt.from_payload(said, when) if not event else _claim(config, said, when, UUID(event))
    if found is None:
        return None
    if found.version != said["version"]:
        get_run_logger().info("version %s takes the place of %r", found.version, said["version"])
    if found.dataset == FROM_INDEX and config.retriever is None:
        raise ConfigError(
            f"the event says that contexts are to be fetched from the index ({FROM_INDEX}), but this deployment has no "
            "retriever; set one in its configuration, or announce a dataset"
        )
    return found


def _claim(config: RunConfig, said: Mapping[str, str], when: datetime, event: UUID) -> IndexRebuilt | None:
    quiet, longest = (timedelta(seconds=each) for each in (config.deploy.debounce_seconds, config.deploy.longest_wait))
    found = claim_newest(said["index"], when, event, quiet, _LOOK_BACK + longest)
    try:
        IndexRebuilt.from_payload(said, when)
    except ConfigError as error:
        # Of a burst there is this run only, so an event that cannot be used must not take the others with it.
        if found is None:
            raise
        _alert(config, said, str(error))
    return found


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
    return Path(run_evaluation(config.model_copy(update=changes)).folder)


def _compare(config: RunConfig, rebuilt: IndexRebuilt, folders: tuple[Path, Path]) -> RunComparison:
    """Check a run against the baseline by the gate, and write the comparison page to the run folder."""
    found = compare_runs(*folders, CompareOptions(gate=config.deploy.gate or default_gate()))
    (folders[1] / COMPARISON).write_text(comparison_page(found), encoding="utf-8", errors="replace")
    about = f"index {rebuilt.index}, version {rebuilt.version} beside its baseline"
    create_markdown_artifact(comparison_markdown(found), key=ARTIFACT, description=about)
    return found


def _refuse(config: RunConfig, rebuilt: IndexRebuilt, baseline: str, found: RunComparison) -> State[dict[str, Any]]:
    folder = Path(found.b.folder)
    has_failed = found.gate is not None and found.gate.outcome is Outcome.FAILED
    alert = Alert(
        index=rebuilt.index,
        version=rebuilt.version,
        outcome="failed" if has_failed else "inconclusive",
        worse=tuple(_describe_worse(found)),
        baseline=baseline,
        folder=str(folder),
        report=link_to(folder, COMPARISON, config.deploy.alerts),
        flow_run=str(flow_run.id),
    )
    send(alert, config.deploy.alerts)
    told = {**rebuilt.payload, "accepted": False, "folder": str(folder), "baseline": baseline}
    if has_failed:
        return Failed(message=alert.text, data=told)
    return Completed(name="Inconclusive", message=alert.text, data=told)


def _accept(baselines: Baselines, baseline: Baseline, why: str) -> State[dict[str, Any]]:
    told = {"index": baseline.index, "version": baseline.version, "folder": baseline.folder}
    if not baselines.accept(baseline):
        newer = baselines.current(baseline.index)
        version = "another one" if newer is None else newer.version
        message = (
            f"version {baseline.version} is not accepted: version {version}, which is newer, was accepted meanwhile"
        )
        return Completed(name="Superseded", message=message, data={**told, "accepted": False})
    message = f"version {baseline.version} is the baseline of index {baseline.index} now: {why}"
    return Completed(name="Accepted", message=message, data={**told, "accepted": True})


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


def _is_claimed_elsewhere(said: Mapping[str, str]) -> State[dict[str, Any]]:
    message = (
        f"version {said['version']} of index {said['index']} was taken up by another run, with others of its burst"
    )
    return Completed(name="Superseded", message=message, data={**said, "accepted": False})


def _report_superseded(rebuilt: IndexRebuilt, newer: Baseline) -> State[dict[str, Any]]:
    message = f"version {rebuilt.version} of index {rebuilt.index} is older than its baseline, version {newer.version}"
    told = {**rebuilt.payload, "accepted": False, "baseline": newer.version}
    return Completed(name="Superseded", message=message, data=told)


def _describe_worse(found: RunComparison) -> Iterator[str]:
    """Yield a sentence for each check that did not pass and each metric that is significantly worse."""
    for check in found.gate.checks if found.gate else ():
        if check.outcome is not Outcome.PASSED:
            observed = "nothing" if check.observed is None else f"{check.observed:.3f}"
            interval = f" ({format_interval(check.interval)})" if check.interval else ""
            yield f"{check.metric}: {check.rule}, observed {observed}{interval} over {check.rows} rows: {check.reason}"
    for metric in found.metrics:
        if metric.verdict is ChangeOutcome.WORSE:
            before, after, change, interval, *_ = numbers(metric)
            yield f"{title(metric)}: from {before} to {after} ({change}, {interval})"


@contextmanager
def _alert_on_error(config: RunConfig, said: Mapping[str, str]) -> Iterator[None]:
    """Send an alert about an error in the block, and raise the error again."""
    try:
        yield
    except Exception as error:
        # An error of ours is written for people; of others only the kind is told, for alerts leave the house.
        reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the log of the run has more"
        _alert(config, said, reason)
        raise


def _alert(config: RunConfig, said: Mapping[str, str], reason: str) -> None:
    """Send an alert about a version that could not be evaluated."""
    alert = Alert(
        index=said["index"] or "?",
        version=said["version"] or "?",
        outcome="error",
        worse=(reason,),
        flow_run=str(flow_run.id),
    )
    send(alert, config.deploy.alerts)
