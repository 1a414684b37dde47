"""The checks of `assay doctor`: one per dependency of a run, each with advice for a problem."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import httpx

from deployments.cli._support.run_lines import left_out_lines
from deployments.local_server import ServerAddress, find_address, find_configured_url, server_status, use_server
from deployments.web.http_guard import basic_authorization
from flows.alerting.silencing import check_maintenance
from flows.config.deploy_options import DeployOptions
from flows.config.run_config import RunConfig
from flows.dry_run.forecast import find_launched_rates, make_forecast
from flows.planning.checks import run_checks
from flows.planning.planner import draft_plan, plan_source, plan_without_data
from flows.planning.run_check import RunCheck
from flows.planning.run_plan import RunPlan
from metric_core.errors import AssayError
from tasks.cache.maintenance import statistics
from tasks.opening.caches import open_cache
from tasks.opening.local_models import load_pipeline
from tasks.opening.run_models import RunModels
from tasks.options.cache_options import CacheOptions
from tasks.options.embedder_options import EmbedderOptions, EmbedderSettings
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.language_options import LanguageOptions, LanguageSettings
from tasks.runtime import release
from tasks.runtime.atomic_files import create_private_folder
from tasks.runtime.credentials import mask_url
from tasks.runtime.home import assay_home
from tasks.runtime.wording import describe_seconds
from tasks.runtime.writable import probe_folder
from tasks.sources import available_columns

if TYPE_CHECKING:
    from deployments.registry.specs import DeploymentPlan

PACKAGES = ("prefect", "pyarrow", "datasets", "spacy", "onnxruntime", "rapidfuzz")
MIN_FREE_BYTES = 2 * 1024**3
"""Free space, in bytes, that a disk should have for stage tables and cached answers."""

FEW_ROWS = 10
"""Rows from which the duration of a run is estimated."""

_JUDGE_ADVICE = "start the server, or correct the URL or the model; see `assay docs judge-servers`"
_REINSTALL = "reinstall rag-assay with pip"


class Level(StrEnum):
    """The outcome of a check."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """The result of a check.

    Args:
        name: Name of the check.
        level: Outcome of the check.
        found: Description of the finding.
        advice: Advice on how to solve a problem; None if there is nothing to do.
    """

    name: str
    level: Level
    found: str
    advice: str | None = None


def check_versions() -> Iterator[DoctorCheck]:
    """Check the versions of Python and the packages."""
    python = platform.python_version()
    is_supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    advice: str | None = None if is_supported else "use Python 3.11, 3.12 or 3.13"
    yield DoctorCheck("Python", Level.OK if is_supported else Level.WARNING, f"{python} at {sys.executable}", advice)
    found, missing = [f"rag-assay {release.version()}"], []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        yield DoctorCheck("packages", Level.PROBLEM, f"missing: {', '.join(missing)}", _REINSTALL)
    else:
        yield DoctorCheck("packages", Level.OK, ", ".join(found))


def check_home() -> Iterator[DoctorCheck]:
    """Check that ASSAY_HOME can be written and has free space."""
    home = assay_home()
    try:
        create_private_folder(home)
        probe_folder(home)
    except OSError as error:
        advice = "set ASSAY_HOME to a folder that you may write to"
        yield DoctorCheck("ASSAY_HOME", Level.PROBLEM, f"{home} cannot be written: {error.strerror or error}", advice)
        return
    yield DoctorCheck("ASSAY_HOME", Level.OK, str(home))
    free = shutil.disk_usage(home).free
    level = Level.OK if free >= MIN_FREE_BYTES else Level.WARNING
    disk_advice = None if level is Level.OK else "free some space, or set ASSAY_HOME to another disk"
    yield DoctorCheck("disk", level, f"{free / 1024**3:,.1f} GiB free", disk_advice)


def check_cache(options: CacheOptions | None) -> Iterator[DoctorCheck]:
    """Check that the answer cache can be opened."""
    cache = open_cache(None if options is None else options.cache)
    count = sum(step.count for step in statistics(cache))
    yield DoctorCheck("answers", Level.OK, f"{count:,} cached in {cache.database.name}")


def check_entities(options: LanguageOptions | None) -> Iterator[DoctorCheck]:
    """Check that the entity recognizer works."""
    pipeline = load_pipeline(options.language if options else LanguageSettings())
    pipeline.entities(["Ada Lovelace lived in London."])
    yield DoctorCheck("entities", Level.OK, f"{pipeline.identity.model} {pipeline.identity.revision}")


def check_embedder(options: EmbedderOptions | None) -> Iterator[DoctorCheck]:
    """Check that the embedder works."""
    embedder = RunModels().open_embedder(options.embedder if options else EmbedderSettings())
    embedder.embed(["one sentence"])
    yield DoctorCheck("embedder", Level.OK, f"{embedder.identity.model}, {embedder.identity.dimensions} dimensions")


def check_maintenance_windows(options: DeployOptions | None) -> Iterator[DoctorCheck]:
    """Check that periods without messages end."""
    windows = () if options is None else options.deploy.alerts.maintenance
    if windows:
        check_maintenance(windows, datetime.now(UTC))
        yield DoctorCheck("maintenance", Level.OK, f"{len(windows)} recurring periods without messages, which end")


def check_prefect() -> Iterator[DoctorCheck]:
    """Check the Prefect server that a run would use."""
    url = find_configured_url()
    if url is None:
        status = server_status(assay_home())
        found = str(status) if status.running else "a local server starts with the next run"
        yield DoctorCheck("Prefect", Level.OK, found)
        if status.record is not None:
            yield from _check_automations(status.record.address)
        return
    from prefect.settings import get_current_settings

    password = get_current_settings().api.auth_string
    headers = {} if password is None else {"Authorization": basic_authorization(password.get_secret_value())}
    try:
        response = httpx.get(f"{url.rstrip('/')}/health", headers=headers, timeout=5)
        response.raise_for_status()
    except httpx.HTTPError as error:
        advice = "start this server, or remove its URL from Prefect's settings (PREFECT_API_URL) to use a local server"
        # The message of a status error contains the URL, which may contain a password.
        reason = f"status {error.response.status_code}" if isinstance(error, httpx.HTTPStatusError) else str(error)
        found = f"{mask_url(url)} does not answer: {reason or type(error).__name__}"
        yield DoctorCheck("Prefect", Level.PROBLEM, found, advice)
    else:
        yield DoctorCheck("Prefect", Level.OK, f"{mask_url(url)} answers")
        yield from _check_automations(ServerAddress(url))


def _check_automations(server: ServerAddress) -> Iterator[DoctorCheck]:
    """Check that each automation on the server has its deployment, and report deployments that share an index."""
    from prefect.client.orchestration import get_client

    from deployments.registry.automations import (
        find_overlaps,
        find_unwatched,
        stale_automations,
    )
    from flows.index_events.unhandled import find_unhandled

    with use_server(server), get_client(sync_client=True) as client:
        stale, overlaps, unwatched = stale_automations(client), list(find_overlaps(client)), find_unwatched(client)
        unhandled = find_unhandled(client, datetime.now(UTC))
    if stale:
        names = ", ".join(each.name for each in stale)
        advice = "the next `assay deploy` or `assay undeploy` removes them"
        yield DoctorCheck("automations", Level.WARNING, f"their deployment is gone: {names}", advice)
    for each in overlaps:
        yield DoctorCheck("deployments", Level.WARNING, f"{each.name}: {each.detail}")
    if unwatched:
        found = f"nobody gets a message if their scheduled runs are missing: {', '.join(unwatched)}"
        advice = "set a recipient in [deploy.alerts] that is not a file, and deploy again where its variables are set"
        yield DoctorCheck("missing runs", Level.WARNING, found, advice)
    if unhandled:
        found = "; ".join(f"{each.words} (for {each.deployment})" for each in unhandled)
        advice = "the next run for an event starts them; Prefect on SQLite loses events of a burst, PostgreSQL does not"
        yield DoctorCheck("events", Level.WARNING, f"no run has taken up {found}", advice)


def check_judge_servers(config: RunConfig | None) -> Iterator[DoctorCheck]:
    """Check that the judges can be reached, and report their features."""
    chosen = JudgedSettings()
    if config is not None:
        chosen = JudgedSettings(judge=config.judge, embedder=config.embedder, language=config.language)
    named: list[tuple[str, SingleJudgeSettings]] = [("judge", chosen.judge)]
    for group, settings in chosen.judge.by_group.items():
        named += [(f"judge of {group}", settings), *((f"panel of {group}", each) for each in settings.panel)]
    if config is not None:
        if config.cascade is not None:
            named.append(("cheaper judge of the cascade", config.cascade.first))
        named += [judge for each in config.of_findings for judge in each.other_judges.items()]
    for name, judge in named:
        try:
            yield from _check_one(name, judge, chosen)
        except AssayError as error:
            yield DoctorCheck(name, Level.PROBLEM, str(error), _JUDGE_ADVICE)


def _check_one(name: str, settings: SingleJudgeSettings, options: JudgedSettings) -> Iterator[DoctorCheck]:
    """Check one judge of a configuration."""
    if settings.launch is not None and (settings.server is None or not settings.server.urls):
        yield DoctorCheck(name, Level.OK, "is launched with the run")
        return
    judge = RunModels().open_judge(settings, options)
    identity = judge.identity
    advice = None
    if not identity.language_model and not options.judge.by_group:
        advice = "metrics that need a language model are not computed by default; name one with --judge URL"
    yield DoctorCheck(name, Level.OK, f"{identity.backend}: {identity.model}", advice)
    features = getattr(judge, "features", None)
    if features is not None:
        yield from _check_features(features, name)


def _check_features(features: object, judge: str) -> Iterator[DoctorCheck]:
    names = getattr(type(features), "__slots__", ())
    values = {name: getattr(features, name) for name in names}
    weak = [name for name in ("choice", "json") if str(values.get(name)) == "none"]
    if not values.get("top_logprobs", 1):
        weak.append("log-probabilities")
    level = Level.WARNING if weak else Level.OK
    advice = (
        f"it lacks {', '.join(weak)}: answers cost more or have no probabilities; see `assay docs judge-servers`"
        if weak
        else None
    )
    yield DoctorCheck(
        f"{judge} features", level, ", ".join(f"{name} {value}" for name, value in values.items()), advice
    )


def check_source(options: EvaluationOptions, draft: Callable[[], RunPlan]) -> Iterator[DoctorCheck]:
    """Check the columns of the data, and report the metrics that they allow.

    Args:
        options: Options of the evaluation.
        draft: Function that plans the run.
    """
    columns = available_columns(options.source or "", plan_source(options).options(limit=None))
    yield DoctorCheck("columns", Level.OK, f"{', '.join(columns)} in {options.source}")
    metrics = draft().metrics
    yield DoctorCheck("metrics", Level.OK, ", ".join(request.key for request in metrics.requests))
    for line in left_out_lines(metrics.left_out):
        yield DoctorCheck("left out", Level.OK, line)


def check_duration(options: RunConfig) -> Iterator[DoctorCheck]:
    """Say how long a run takes with a judge that was launched here and measured, from its first rows."""
    plan = draft_plan(options.model_copy(update={"limit": min(options.limit or FEW_ROWS, FEW_ROWS)}))
    rates = find_launched_rates(plan)
    if rates is None:
        return
    from flows.findings.preview import preview_run

    dry_run = preview_run(plan)
    seconds = make_forecast(plan, dry_run, rates).seconds
    if seconds and dry_run.rows:
        row = describe_seconds(seconds / dry_run.rows)
        found = f"a run takes about {row} a row (estimated from {dry_run.rows}), at {rates.words}"
        yield DoctorCheck("duration", Level.OK, found, "`assay plan` counts all rows")


def check_run_needs(draft: Callable[[], RunPlan], draft_without_data: Callable[[], RunPlan]) -> Iterator[DoctorCheck]:
    """Check what a run checks before it starts: its folder, the files that it reads, and the first rows of the data.

    Args:
        draft: Function that plans the run.
        draft_without_data: Function that plans it without its rows and metrics.
    """
    try:
        plan, with_data = draft(), True
    except AssayError:  # the check of the data reports it
        plan, with_data = draft_without_data(), False
    yield from _results(run_checks(plan, with_data=with_data))


def check_deployments(plan: "DeploymentPlan") -> Iterator[DoctorCheck]:
    """Check what deployments need."""
    from deployments.registry.checks import deployment_checks

    yield from _results(deployment_checks(plan, is_here=True))


def check_blocks_and_pool(plan: "DeploymentPlan") -> Iterator[DoctorCheck]:
    """Check the blocks that the deployments use, and the work pool."""
    from prefect.client.orchestration import get_client

    from deployments.registry.checks import check_pool, server_checks
    from deployments.registry.specs import POOL

    configured, server = find_configured_url(), find_address(assay_home())
    if server is None:
        if plan.options.deploy.alerts.block or any(each.startswith("block:") for each in plan.secrets):
            advice = "start the server (`assay serve`), or set PREFECT_API_URL, and repeat the check"
            yield DoctorCheck("blocks", Level.WARNING, "no Prefect server is running that could have them", advice)
        return
    with use_server(server), get_client(sync_client=True) as client:
        yield from _results(server_checks(client, plan))
        if configured is not None:
            pool = os.environ.get("ASSAY_POOL", POOL)
            yield from _results([RunCheck("work pool", lambda: check_pool(client, pool), "")], Level.WARNING)


def _results(checks: Iterable[RunCheck], level: Level = Level.PROBLEM) -> Iterator[DoctorCheck]:
    """Yield the results of checks; `level` is that of a check that fails."""
    for each in checks:
        try:
            yield DoctorCheck(each.name, Level.OK, each.check())
        except AssayError as error:
            yield DoctorCheck(each.name, level, str(error), each.advice or None)


def _groups_of_plans(config: RunConfig) -> Iterator[tuple[str, Callable[[], Iterator[DoctorCheck]], str]]:
    """Yield the checks of the plans that are made from a configuration, each with its name and advice."""

    @cache
    def draft() -> RunPlan:
        return draft_plan(config)

    def draft_without_data() -> RunPlan:
        return plan_without_data(config)

    @cache
    def deployments() -> "DeploymentPlan":
        from deployments.registry.specs import plan_deployments

        return plan_deployments(config)

    if config.source is not None:
        advice = "correct the name of the file, or its columns with column_map"
        yield "data", lambda: check_source(config, draft), advice
        yield "duration", lambda: check_duration(config), "see assay plan"
    yield "run", lambda: check_run_needs(draft, draft_without_data), "correct the configuration"
    if config.deploy != type(config.deploy)():
        advice = "correct [deploy] in the configuration"
        yield "deployments", lambda: check_deployments(deployments()), advice
        advice = "start the Prefect server, or correct PREFECT_API_URL"
        yield "blocks", lambda: check_blocks_and_pool(deployments()), advice


def all_checks(config: RunConfig | None) -> Iterator[DoctorCheck]:
    """Run all checks, in the order in which a run needs their subjects; an error becomes the result of its check.

    Args:
        config: Configuration to check; None if it cannot be used.
    """
    groups: list[tuple[str, Callable[[], Iterator[DoctorCheck]], str]] = [
        ("installation", check_versions, _REINSTALL),
        ("ASSAY_HOME", check_home, "set ASSAY_HOME to a folder that you may write to"),
        ("answers", lambda: check_cache(config), "see `cache` in the configuration, or ASSAY_HOME"),
        ("entities", lambda: check_entities(config), "install the spaCy pipeline that language.pipeline names"),
        ("embedder", lambda: check_embedder(config), "correct `embedder` in the configuration"),
        ("maintenance", lambda: check_maintenance_windows(config), "correct deploy.alerts.maintenance"),
        ("Prefect", check_prefect, "see PREFECT_API_URL"),
        ("judge", lambda: check_judge_servers(config), _JUDGE_ADVICE),
        *([] if config is None else _groups_of_plans(config)),
    ]
    for name, check, advice in groups:
        try:
            yield from check()
        except AssayError as error:
            yield DoctorCheck(name, Level.PROBLEM, str(error), advice)
        except Exception as error:  # noqa: BLE001 a broken installation can raise anything, and the doctor must report it
            yield DoctorCheck(name, Level.PROBLEM, f"{type(error).__name__}: {error}", f"{advice}; or report it")
