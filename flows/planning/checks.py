"""Check what a run needs before anything starts: no server, no judge and no flow runs until all checks have passed.

Each check takes a fraction of a second and changes nothing. Prefect is not imported here, which would take longer than
all checks together.
"""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from flows.config.result_options import ResultOptions
from flows.planning.finding_table import planned_findings
from flows.planning.metric_plan import MetricPlan
from flows.planning.run_check import RunCheck
from flows.planning.run_plan import FolderPlan, RunPlan
from metric_core.errors import BadRowsError, ConfigError, MissingDependencyError, RunFolderError
from metric_core.question_kinds import KindGroup
from tasks.calibration import calibration_files
from tasks.findings.table import nested_folders
from tasks.opening.caches import open_cache
from tasks.options.launch_options import LaunchSettings
from tasks.processes.launch_command import build_command
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import RUNS, RunFolder
from tasks.runtime.atomic_files import translate_write_errors
from tasks.runtime.credentials import check_variable
from tasks.runtime.writable import check_file, probe_folder
from tasks.sources import read_samples

FIRST_ROWS = 100
"""Rows that are read before a run starts."""

_CLUSTER_PACKAGES = {"dask": "prefect_dask", "ray": "prefect_ray"}


def run_checks(plan: RunPlan, *, with_data: bool = True) -> Iterator[RunCheck]:
    """Yield the checks of a run, quick ones first.

    Args:
        with_data: False if its rows and metrics are not checked.
    """
    yield from _output_checks(plan.folder, plan.outputs)
    if plan.metrics.options.calibration not in ("none", "latest"):
        advice = "correct `calibration`"
        yield RunCheck("calibration", lambda: _check_calibration(plan.metrics, with_data=with_data), advice)
    if plan.secrets:
        yield RunCheck("secrets", lambda: check_references(plan.secrets), "set the variable before the run")
    if launched := plan.models.launches:
        yield RunCheck("judge program", lambda: _check_program(launched), "correct [judge.launch]")
    if (engine := plan.storage.runner.engine) in _CLUSTER_PACKAGES:
        yield RunCheck("runner", lambda: _check_runner(engine), "install the extra, or correct `runner`")
    if (address := plan.models.cache) is not None:
        yield RunCheck("cache", lambda: _check_cache(address), "correct `cache` (--cache)")
    if with_data:
        for finding in planned_findings(plan):
            if finding.checks:
                yield from import_module(finding.checks).find_checks(plan)
        yield RunCheck("first rows", lambda: _check_rows(plan), "correct the data, or `on_bad_row`")


def _output_checks(folder: FolderPlan, outputs: ResultOptions) -> Iterator[RunCheck]:
    yield RunCheck("run folder", lambda: _check_folder(folder.out), "correct `out` (--out)")
    if (baseline := outputs.baseline) is not None:
        yield RunCheck("baseline", lambda: str(FinishedRun(baseline).folder), "correct `baseline` (--baseline)")
    if (file := outputs.metrics_file) is not None:
        yield RunCheck("metrics file", lambda: _check_metrics_file(file), "correct `metrics_file` (--metrics-file)")
    if sinks := outputs.sinks:
        yield RunCheck("sinks", lambda: _check_sinks(sinks), "correct `sinks` (--sink)")


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
        folder.check(nested_folders())
        return str(folder.path)
    runs = Path(RUNS).absolute()
    with translate_write_errors(f"the run folder below {runs}", RunFolderError, "Name another folder with --out."):
        probe_folder(runs)
    return f"new, in {runs}"


def _check_sinks(sinks: Mapping[str, str]) -> str:
    from tasks.reports.exports.sinks import find_sink  # noqa: PLC0415 few runs have any

    for name, address in sinks.items():
        find_sink(name).check(address)
    return ", ".join(sinks)


def _check_metrics_file(file: str) -> str:
    check_file(Path(file), "the metrics file", ConfigError)
    return file


def _check_calibration(metrics: MetricPlan, *, with_data: bool) -> str:
    options = metrics.options
    calibration = calibration_files.load_calibration(Path(options.calibration).expanduser())
    if with_data and calibration.name not in {request.metric.name for request in metrics.requests}:
        raise ConfigError(
            f"the calibration {options.calibration} is for {calibration.metric}, which this run does not compute"
        )
    if options.verdict == "binary":
        raise ConfigError(
            f'calibration = "{options.calibration}" changes probabilities, but verdict is "binary"; '
            'set verdict = "probability"'
        )
    return f"{calibration.metric} in {options.calibration}"


def _check_program(launched: Mapping[KindGroup | None, LaunchSettings]) -> str:
    commands = (build_command(each, 0, os.environ, "check", group or "") for group, each in launched.items())
    programs = (command.words[0] for command in commands)
    return ", ".join(dict.fromkeys(programs))


def _check_runner(engine: str) -> str:
    if find_spec(_CLUSTER_PACKAGES[engine]) is None:
        raise MissingDependencyError(
            _CLUSTER_PACKAGES[engine], f'runner = "{engine}"', f"pip install 'rag-assay[{engine}]'"
        )
    return engine


def _check_cache(address: str) -> str:
    cache = open_cache(address)
    cache.ensure()
    return cache.database.name


def _check_rows(plan: RunPlan) -> str:
    """Read the first rows; if one is bad and stops the run, read all, because the message lists all bad rows."""
    source, required = plan.source, plan.metrics.required
    if source.retriever is not None:
        return "contexts are fetched first"
    limit = min(source.limit or FIRST_ROWS, FIRST_ROWS)
    reader = read_samples(source.source or "", source.options(limit=limit), required)
    if source.on_bad_row == "skip":
        return "bad rows are left out"
    try:
        rows = sum(table.num_rows for table in reader)
    except BadRowsError:
        for _ in read_samples(source.source or "", source.options(), required):
            pass
        raise
    return f"{rows} read"
