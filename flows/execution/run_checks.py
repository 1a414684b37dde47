"""Check what a run needs before anything starts: no server, no judge and no flow runs until all checks have passed.

Each check takes a fraction of a second and changes nothing. Prefect is not imported here, which would take longer than
all checks together.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from flows.config.references import find_references
from flows.config.run_config import RunConfig, launches
from flows.execution.anchor_plan import check_anchor
from flows.execution.plan import Plan, plan_run
from flows.execution.source_reading import source_options
from metric_core.errors import BadRowsError, ConfigError, MissingDependencyError, RunFolderError
from tasks.calibration import calibration_files
from tasks.launcher.launch_command import build_command
from tasks.models.caches import open_cache
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import RUNS, RunFolder
from tasks.runtime.atomic_files import translate_write_errors
from tasks.runtime.credentials import check_variable
from tasks.runtime.writable import check_file, probe_folder
from tasks.sources import read_samples

FIRST_ROWS = 100
"""Rows that are read before a run starts."""

_CLUSTER_PACKAGES = {"dask": "prefect_dask", "ray": "prefect_ray"}


@dataclass(frozen=True, slots=True)
class RunCheck:
    """A check of something that a run or a deployment needs.

    Args:
        name: Name of the check.
        check: Returns a description of what was found, or raises an AssayError.
        advice: Advice on how to solve a problem.
    """

    name: str
    check: Callable[[], str]
    advice: str


def check_run(config: RunConfig) -> Plan:
    """Plan a run, and check everything that can be checked before it starts.

    Args:
        config: Configuration of the run.

    Returns:
        The plan.

    Raises:
        AssayError: A check failed; the message says what to do.
    """
    plan = plan_run(config)
    for each in run_checks(config, plan):
        each.check()
    return plan


def run_checks(config: RunConfig, plan: Plan | None = None) -> Iterator[RunCheck]:
    """Yield the checks of a run, quick ones first.

    Args:
        config: Configuration of the run.
        plan: Its plan; without one, rows and metrics are not checked.
    """
    yield from _output_checks(config)
    if config.calibration not in ("none", "latest"):
        yield RunCheck("calibration", lambda: _check_calibration(config, plan), "correct `calibration`")
    if references := find_references(config, without=("deploy",)):
        yield RunCheck("secrets", lambda: check_references(references), "set the variable before the run")
    if launches(config):
        yield RunCheck("judge program", lambda: _check_program(config), "correct [judge.launch]")
    if config.runner.engine in _CLUSTER_PACKAGES:
        yield RunCheck("runner", lambda: _check_runner(config.runner.engine), "install the extra, or correct `runner`")
    if config.cache is not None:
        yield RunCheck("cache", lambda: _check_cache(config), "correct `cache` (--cache)")
    if plan is not None and config.anchor is not None:
        yield RunCheck("anchor", lambda: check_anchor(config, plan), "correct [anchor]")
    if plan is not None:
        yield RunCheck("first rows", lambda: _check_rows(config, plan), "correct the data, or `on_bad_row`")


def _output_checks(config: RunConfig) -> Iterator[RunCheck]:
    yield RunCheck("run folder", lambda: _check_folder(config.out), "correct `out` (--out)")
    if (baseline := config.baseline) is not None:
        yield RunCheck("baseline", lambda: str(FinishedRun(baseline).folder), "correct `baseline` (--baseline)")
    if (file := config.metrics_file) is not None:
        yield RunCheck("metrics file", lambda: _check_metrics_file(file), "correct `metrics_file` (--metrics-file)")
    if config.otlp is not None:
        yield RunCheck("OTLP", _check_otlp, "install the extra, or remove `otlp` (--otlp)")


def check_references(references: tuple[str, ...]) -> str:
    """Check that the environment variables of references are set, and return the references as text.

    Raises:
        ConfigError: A variable is not set or empty.
    """
    for reference in references:
        check_variable(reference)
    return ", ".join(references)


def _check_folder(out: str | None) -> str:
    if out is not None:
        folder = RunFolder.from_option(out)
        folder.check()
        return str(folder.path)
    runs = Path(RUNS).absolute()
    with translate_write_errors(f"the run folder below {runs}", RunFolderError, "Name another folder with --out."):
        probe_folder(runs)
    return f"new, in {runs}"


def _check_otlp() -> str:
    from tasks.exports.send_scores import check_packages  # noqa: PLC0415 few runs send their scores

    check_packages()
    return "its packages are installed"


def _check_metrics_file(file: str) -> str:
    check_file(Path(file), "the metrics file", ConfigError)
    return file


def _check_calibration(config: RunConfig, plan: Plan | None) -> str:
    calibration = calibration_files.load(Path(config.calibration).expanduser())
    if plan is not None and calibration.name not in {request.metric.name for request in plan.requests}:
        raise ConfigError(
            f"the calibration {config.calibration} is for {calibration.metric}, which this run does not compute"
        )
    if config.verdict == "binary":
        raise ConfigError(
            f'calibration = "{config.calibration}" changes probabilities, but verdict is "binary"; '
            'set verdict = "probability"'
        )
    return f"{calibration.metric} in {config.calibration}"


def _check_program(config: RunConfig) -> str:
    commands = (build_command(each, 0, os.environ, "check", group or "") for group, each in launches(config).items())
    programs = (command.words[0] for command in commands)
    return ", ".join(dict.fromkeys(programs))


def _check_runner(engine: str) -> str:
    if find_spec(_CLUSTER_PACKAGES[engine]) is None:
        raise MissingDependencyError(
            _CLUSTER_PACKAGES[engine], f'runner = "{engine}"', f"pip install 'rag-assay[{engine}]'"
        )
    return engine


def _check_cache(config: RunConfig) -> str:
    cache = open_cache(config.cache)
    cache.ensure()
    return cache.database.name


def _check_rows(config: RunConfig, plan: Plan) -> str:
    """Read the first rows; if one is bad and stops the run, read all, because the message lists all bad rows."""
    if config.retriever is not None:
        return "contexts are fetched first"
    limit = min(config.limit or FIRST_ROWS, FIRST_ROWS)
    reader = read_samples(config.source, source_options(config, limit=limit), plan.required)
    if config.on_bad_row == "skip":
        return "bad rows are left out"
    try:
        rows = sum(table.num_rows for table in reader)
    except BadRowsError:
        for _ in read_samples(config.source, source_options(config), plan.required):
            pass
        raise
    return f"{rows} read"
