"""Where the stages of a run are computed: threads of this process, or processes of a Dask or Ray cluster."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeAlias, cast

from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.config.run_config import RunConfig
from metric_core.errors import AssayError, ConfigError, MissingDependencyError
from tasks.runtime.cancellation import cancellable
from tasks.runtime.telemetry import RAY, disable_telemetry

StageRunner: TypeAlias = TaskRunner[PrefectFuture[Any]]

SHARDS_A_WORKER = 2
"""Shards in hand for each stage that runs at the same time: so many that no worker waits, so few that memory holds."""

INTERRUPTED_SECONDS = 1.0
"""How long an interrupted run waits for stages: hanging up on a judge takes a moment, a model's batch seconds."""

_LOOPBACK = "127.0.0.1:0"
"""For the page on which a Dask cluster of our own shows itself: any free port, for this machine only."""

_OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Shared memory of a Ray cluster of our own, near the least it takes: only references pass through it."""


@contextmanager
def start_runner(config: RunConfig) -> Iterator[None]:
    """Has the stages that the running flow submits in the block computed where the configuration says.

    Args:
        config: its `runner` and `workers` say where.

    Raises:
        ConfigError: a cluster elsewhere, without stores that it can reach.
        MissingDependencyError: the engine is not installed.
        AssayError: there is no cluster at the address.
    """
    context = FlowRunContext.get()
    if context is None:
        raise RuntimeError("stages run within a flow")
    runner = runner_of(config)
    with _enter(runner, config), cancellable(), context.model_copy(update={"task_runner": runner}):
        yield


def runner_of(config: RunConfig) -> StageRunner:
    """Runs as many stages at the same time as the configuration allows, where it says."""
    if config.runner.is_elsewhere:
        _refuse_stores_of_this_machine(config)
    if config.runner.engine == "dask":
        return _dask(config)
    if config.runner.engine == "ray":
        return _ray(config)
    return cast("StageRunner", ThreadPoolTaskRunner[Any](max_workers=config.stages_at_once()))


def max_concurrent_shards(config: RunConfig) -> int:
    """How many shards are in hand at the same time.

    Futures, and what the engine keeps for them, are there for these only, however long the run is.
    """
    return SHARDS_A_WORKER * config.stages_at_once()


@contextmanager
def _enter(runner: StageRunner, config: RunConfig) -> Iterator[None]:
    if config.runner.engine == "threads":
        with _threads(runner):
            yield
        return
    try:
        runner.__enter__()
        if config.runner.engine == "dask":
            _ = cast("Any", runner).client  # connects, which the runner itself does at the first stage only
    except (OSError, TimeoutError, RuntimeError, ValueError) as error:
        where = f"at {config.runner.address}" if config.runner.is_elsewhere else "on this machine"
        raise AssayError(f"there is no {config.runner.engine} cluster to be had {where}: {error}") from error
    try:
        yield
    finally:
        runner.__exit__(None, None, None)


@contextmanager
def _threads(runner: StageRunner) -> Iterator[None]:
    """Waits at the end for the stages that have begun; not for long where the run is interrupted.

    Stages hear of that themselves, but one may be in the middle of a model's work.
    """
    runner.__enter__()
    patience = None
    try:
        yield
    except Exception:
        raise
    except BaseException:
        patience = INTERRUPTED_SECONDS
        raise
    finally:
        end = Thread(target=runner.__exit__, args=(None, None, None), name="end-of-stages", daemon=True)
        end.start()
        end.join(patience)


def _refuse_stores_of_this_machine(config: RunConfig) -> None:
    missing = [name for name in ("tables", "cache") if getattr(config, name) is None]
    if missing:
        raise ConfigError(
            f"the stages run on the cluster at {config.runner.address}, but {' and '.join(missing)} would be files of "
            'this machine. Name stores that every worker reaches, such as tables = "s3://bucket/assay" and '
            'cache = "postgresql://assay@db.example/answers".'
        )


def _dask(config: RunConfig) -> StageRunner:
    try:
        from prefect_dask.task_runners import DaskTaskRunner  # noqa: PLC0415 an extra, and slow to import
    except ModuleNotFoundError as error:
        raise _missing_dependency("dask", error) from error
    if config.runner.is_elsewhere:
        return cast("StageRunner", DaskTaskRunner(address=config.runner.address))
    cluster = {"n_workers": config.stages_at_once(), "threads_per_worker": 1, "dashboard_address": _LOOPBACK}
    return cast("StageRunner", DaskTaskRunner(cluster_kwargs=cluster))


def _ray(config: RunConfig) -> StageRunner:
    disable_telemetry(RAY)
    try:
        import ray  # noqa: F401, PLC0415 prefect_ray would look for it only when it starts
        from prefect_ray.task_runners import RayTaskRunner  # noqa: PLC0415 an extra, and slow to import
    except ModuleNotFoundError as error:
        raise _missing_dependency("ray", error) from error
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not config.runner.is_elsewhere:
        own = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        options |= {"num_cpus": config.stages_at_once(), **own}
    return cast("StageRunner", RayTaskRunner(address=config.runner.address or "local", init_kwargs=options))


def _missing_dependency(engine: str, error: ModuleNotFoundError) -> MissingDependencyError:
    return MissingDependencyError(error.name or engine, f'runner = "{engine}"', f"pip install 'rag-assay[{engine}]'")
