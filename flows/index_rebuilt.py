"""The flow `index-rebuilt`: evaluate a new version of an index, and accept it if it passes the gate.

The judge is asked only about what has changed since earlier versions, because answers and stage tables are cached. The
first version of an index becomes its baseline. A later one is accepted if the gate passes; otherwise the baseline
stays, an alert says what got worse, and the flow run fails or is inconclusive. An older version never replaces a newer
one: this is checked before the evaluation, and again before the version is accepted. Each deployment has baselines of
its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas import State
from prefect.logging import get_run_logger
from prefect.runtime import deployment
from prefect.states import Completed, Failed

from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.deployed_parameters import as_deployed
from flows.index_events.announced_dataset import check_dataset
from flows.index_events.debounce import claim_newest, supersede_older
from flows.index_events.index_event import FROM_INDEX, ArrivedEvent, IndexRebuilt
from flows.index_events.rebuild_guards import AnnouncedIndex, guard
from flows.index_events.unhandled import start_unhandled
from flows.monitoring.chain import run_chain
from flows.monitoring.chain_result import ChainResult
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.reporter import Reporter, report_refused
from flows.planning.planner import plan_run
from flows.publishing.run_subject import name_index_run, subject_name
from flows.resume_crashed import find_given_up
from metric_core.errors import AssayError, ConfigError
from tasks.options.narrow import narrow
from tasks.options.source_options import DataOptions
from tasks.prefect_support.deployed_run import is_deployed
from tasks.prefect_support.patience import crash_without_server, wait_for_server
from tasks.runs.baselines import DEFAULT_DEPLOYMENT


@dataclass(frozen=True, slots=True)
class _Versions:
    """The versions of an index that a configuration evaluates."""

    config: RunConfig

    @staticmethod
    def own_version(
        payload: Mapping[str, object], announced: str, parameter: Mapping[str, object] | None
    ) -> IndexRebuilt:
        """Return the version that the parameters of the run name."""
        if not isinstance(parameter, Mapping):
            return IndexRebuilt.from_payload(payload, _time(announced))
        return ArrivedEvent.from_parameter(parameter).rebuilt()

    def newest(self, payload: dict[str, Any], announced: str, parameter: Mapping[str, object] | None) -> IndexRebuilt:
        """Return the version to evaluate; for a run that an event started, the newest waiting version."""
        if not isinstance(parameter, Mapping):
            return self.own_version(payload, announced, parameter)
        event, settings = ArrivedEvent.from_parameter(parameter), self.config.deploy
        payload.update(event.payload)
        quiet, longest = (timedelta(seconds=each) for each in (settings.debounce_seconds, settings.longest_wait))
        newest = claim_newest(event, quiet, longest, self.can_evaluate)
        _start_lost()
        if newest.payload != event.rebuilt().payload:
            get_run_logger().info("evaluating version %s instead of %r", newest.version, payload["version"])
        return newest

    def can_evaluate(self, rebuilt: IndexRebuilt) -> bool:
        """Return whether a run of a version passes its checks; if not, log why."""
        try:
            plan_run(self.config_of(rebuilt))
        except AssayError as error:
            get_run_logger().warning("version %s of %s cannot be evaluated: %s", rebuilt.version, rebuilt.index, error)
            return False
        return True

    def config_of(self, rebuilt: IndexRebuilt, baseline: Path | None = None) -> RunConfig:
        """Return the configuration with which a version is evaluated.

        Raises:
            ConfigError: The deployment may not evaluate its data set, or has no retriever to fetch it.
        """
        config = self.config
        if rebuilt.dataset == FROM_INDEX and config.retriever is None:
            raise ConfigError(
                f"the event says that contexts are to be fetched from the index ({FROM_INDEX}), but this deployment "
                "has no retriever; set one in its configuration, or announce a dataset"
            )
        if is_deployed():
            for address in filter(None, (rebuilt.dataset, rebuilt.chunks)):
                check_dataset(config, address)
        changes: dict[str, Any] = {
            "baseline": None if baseline is None else str(baseline),
            "out": None,
            "name": subject_name(config.name, config.source, rebuilt.index),
        }
        if rebuilt.dataset != FROM_INDEX:
            changes |= {"source": rebuilt.dataset, "retriever": None}
        return config.model_copy(update=changes)

    def evaluate(self, rebuilt: IndexRebuilt, baseline: Path | None) -> Path:
        """Evaluate a version, and return its run folder."""
        config = self.config_of(rebuilt, baseline)
        passed = guard(AnnouncedIndex(rebuilt.chunks, baseline, narrow(config, DataOptions), config.deploy))
        before = [each.entry for each in passed]
        done = run_evaluation(config, index=rebuilt.index, version=rebuilt.version, before=before)
        folder = Path(done.folder)
        for each in passed:
            each.keep(folder)
        return folder


@flow(name="index-rebuilt", flow_run_name=name_index_run, persist_result=False, validate_parameters=False)
@crash_without_server
@as_deployed(
    refused=report_refused,
    is_monitored=True,
    index=True,
    version=True,
    dataset=True,
    chunks=True,
    announced=True,
    event=True,
)
def index_rebuilt(  # noqa: PLR0913, PLR0917 the fields of a form that people fill in
    config: RunConfig,
    index: str = "",
    version: str = "",
    dataset: str = "",
    chunks: str = "",
    announced: str = "",
    event: dict[str, Any] | None = None,
) -> State[dict[str, Any]]:
    """Evaluate a new version of an index, and accept it as the baseline if the gate passes.

    Args:
        config: Configuration of the evaluation; its `deploy` has the gate, the baselines and the recipients of alerts.
        index: Id of the index.
        version: Its version.
        dataset: Source of its new responses and contexts.
        chunks: Address of its chunks or their receipt, which are checked before anything is evaluated; default none.
        announced: Time of the announcement, in ISO 8601; default now.
        event: The event, with the fields of its payload as they were sent, which replace the parameters above. None
            for a run that was started manually.

    Returns:
        A state named Accepted, Superseded, Inconclusive, or Failed.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    payload: dict[str, Any] = {"index": index, "version": version, "dataset": dataset, "chunks": chunks}
    options = narrow(config, MonitoringOptions)
    reporter = Reporter(options=options, payload=payload)
    with reporter.reporting_errors():
        versions = _Versions(config)
        if (crashed := find_given_up()) is not None:
            reporter.monitored_run = _monitored_run(options, versions.own_version(payload, announced, event))
            raise crashed
        rebuilt = versions.newest(payload, announced, event)
        reporter.monitored_run = _monitored_run(options, rebuilt)
        done = run_chain(reporter, reporter.monitored_run, partial(versions.evaluate, rebuilt))
        if isinstance(event, Mapping) and done.verdict != "superseded":
            supersede_older(rebuilt)
        return _state(rebuilt, done)


def _monitored_run(options: MonitoringOptions, rebuilt: IndexRebuilt) -> MonitoredRun:
    return MonitoredRun(
        name=subject_name(options.name, options.source, rebuilt.index),
        trigger="event",
        index=rebuilt.index,
        version=rebuilt.version,
        announced=rebuilt.announced,
        dataset=rebuilt.dataset,
        deployment=wait_for_server(lambda: deployment.name) or DEFAULT_DEPLOYMENT,
    )


def _state(rebuilt: IndexRebuilt, done: ChainResult) -> State[dict[str, Any]]:
    """Return the final state of the run."""
    if done.verdict in ("failed", "worse"):
        return Failed(message=done.message)
    is_accepted = done.verdict == "accepted"
    result = {**rebuilt.payload, "accepted": is_accepted, "baseline": done.baseline}
    if done.folder is not None:
        result["folder"] = str(done.folder)
    return Completed(name=done.verdict.capitalize(), message=done.message, data=result)


def _start_lost() -> None:
    """Start the runs of other events that the server has lost."""
    with get_client(sync_client=True) as client:
        for lost in wait_for_server(lambda: start_unhandled(client, datetime.now(UTC))):
            get_run_logger().warning("an event had no run, which starts now: %s", lost.words)


def _time(announced: str) -> datetime:
    if not announced:
        return datetime.now(UTC)
    try:
        time = datetime.fromisoformat(announced)
    except ValueError as error:
        raise ConfigError(f"announced must be a time such as 2026-11-21T06:00:00Z, got {announced!r}") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
