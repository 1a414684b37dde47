"""`assay deploy`: create the deployments of a configuration on a Prefect server."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import Json, with_config_except
from deployments.cli._support.verb import VerbGroup
from deployments.local_server import find_configured_url
from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from metric_core.parsing.strict_json import DuplicateKeyError, parse_json

if TYPE_CHECKING:
    from deployments.registry.changes import AppliedChanges

app = VerbGroup()

Options = TypeVar("Options", bound="MonitoringOptions")


class PoolType(StrEnum):
    """The type of a work pool, which determines how it runs jobs."""

    PROCESS = "process"
    DOCKER = "docker"
    KUBERNETES = "kubernetes"


Pool = Annotated[str, typer.Option("--pool", envvar="ASSAY_POOL", help="Work pool; created if it does not exist.")]
Suffix = Annotated[
    str,
    typer.Option("--name", help="Suffix of the names of the deployments, if several configurations share a server."),
]
Cron = Annotated[
    str | None, typer.Option("--cron", help="Schedule of the evaluation. Default: deploy.cron of the configuration.")
]
Interval = Annotated[
    str | None,
    typer.Option("--interval", metavar="30m|4h|1d", help="Interval of the evaluation, instead of a cron expression."),
]
Variables = Annotated[
    list[str] | None, typer.Option("--job-variable", help="Variable of the pool's jobs, as NAME=JSON; can be repeated.")
]
WorkingDir = Annotated[
    Path | None,
    typer.Option(
        "--working-dir",
        help="For a process pool: folder on the worker's machine that holds runs/. Default: the current folder.",
    ),
]


@app.command()
@with_config_except("name")  # here, --name is the suffix of the deployments
def deploy(
    config: RunConfig,
    pool: Pool = "rag-assay",
    work_pool_type: Annotated[
        PoolType | None, typer.Option("--work-pool-type", help="Type of a new pool. Default: process.")
    ] = None,
    image: Annotated[str | None, typer.Option("--image", help="Image of a docker or kubernetes pool.")] = None,
    job_variable: Variables = None,
    working_dir: WorkingDir = None,
    name: Suffix = "",
    cron: Cron = None,
    interval: Interval = None,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print prefect.yaml instead of deploying.")] = False,
    as_json: Json = False,
) -> None:
    """Deploy evaluations to a Prefect work pool."""
    scheduled = with_schedule(config, cron, interval)
    if not as_yaml and find_configured_url() is None:
        raise ConfigError(
            "no Prefect server is configured: set PREFECT_API_URL (`prefect config set PREFECT_API_URL=...`). "
            "To run on this machine only, use `assay serve`, which needs no server."
        )
    from deployments.registry.apply import DeploymentTarget, apply
    from deployments.registry.checks import check_deployment
    from deployments.registry.specs import build_specs, name_suffix, plan_deployments, prefect_yaml

    variables = _variables(job_variable or [])
    if image is None and work_pool_type in (None, PoolType.PROCESS) and "working_dir" not in variables:
        variables["working_dir"] = str((working_dir or Path()).absolute())
    place = DeploymentTarget(
        pool=pool,
        pool_type=None if work_pool_type is None else work_pool_type.value,
        image=image,
        job_variables=variables,
        log_format=scheduled.log_format,
    )
    plan = plan_deployments(scheduled, name_suffix(name))
    check_deployment(plan, is_here=False)
    if as_yaml:
        typer.echo(prefect_yaml(build_specs(plan), pool, place.variables), nl=False)
        return
    print_changes(apply(plan, place), as_json)
    if not as_json:
        stderr.print(f"start a worker on the machine that executes the runs: prefect worker start --pool {pool}")


def with_schedule(options: Options, cron: str | None, interval: str | None) -> Options:
    """Return the options with a schedule from the command line.

    Raises:
        ConfigError: There are two schedules, or there is a schedule but no source.
    """
    if cron is not None and interval is not None:
        raise ConfigError("--cron and --interval are two schedules; keep one")
    if cron is not None or interval is not None:
        schedule = {"cron": cron, "interval": interval}
        options = options.model_copy(update={"deploy": options.deploy.model_copy(update=schedule)})
    if (options.deploy.cron is not None or options.deploy.interval is not None) and options.source is None:
        raise ConfigError("a schedule needs data to evaluate: name a source in the configuration")
    return options


def print_changes(done: "Sequence[AppliedChanges]", as_json: bool) -> None:
    """Print the objects on the server and their changes."""
    if as_json:
        stdout.print_json(json.dumps([asdict(each) for each in done]))
        return
    for each in done:
        line = f"{each.change:<9}  {each.kind:<10}  {each.name}" + (f"  ({each.detail})" if each.detail else "")
        stdout.print(line)


def _variables(options: list[str]) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals):
            raise ConfigError(f"a job variable must be NAME=JSON, got {option!r}")
        if name in variables:
            raise ConfigError(f"the job variable {name} is given twice; keep one of the values")
        try:
            variables[name] = parse_json(value)
        except DuplicateKeyError as error:
            raise ConfigError(f"the job variable {name} cannot be used: {error}") from error
        except (ValueError, RecursionError):
            variables[name] = value
    if not isinstance(variables.get("env", {}), dict):
        raise ConfigError(
            f'the job variable env must be a table of variables, such as env={{"A": "b"}}, got {variables["env"]!r}'
        )
    return variables
