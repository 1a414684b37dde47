"""Start the runner of a run's stages: threads of this process, or processes of a Dask or Ray cluster."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeAlias, cast

from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.config.runner_options import RunnerOptions
from flows.planning.run_plan import StoragePlan
from metric_core.errors import AssayError, ConfigError, MissingDependencyError
from tasks.engine.registry import STAGES
from tasks.engine.schedule import AHEAD
from tasks.prefect_support.run_log import run_logger
from tasks.runtime.cancellation import cancellable
from tasks.runtime.telemetry import RAY, disable_telemetry
from tasks.runtime.threads import ThreadLimitError, start_thread

StageRunner: TypeAlias = TaskRunner[PrefectFuture[Any]]

SHARDS_PER_WORKER = 2
"""Shards in the queue per worker process: enough to keep all workers busy."""

SHARDS_OF_THREADS = 2
"""Shards of threads in the queue: one that ends, and the next; shards of few rows are more."""

CANCELLED_SECONDS = 1.0
"""Seconds that a cancelled run waits for stages: closing connections takes a moment, the batch of a model seconds."""

WORKER_CHECK_SECONDS = 20.0
"""Seconds between two looks at the workers of a cluster while a run waits for a shard."""

_CHECKS_WITHOUT_WORKERS = 6
"""Looks that find no worker before a run on its local cluster fails. Other clusters may start workers when needed."""

_LOOPBACK = "127.0.0.1:0"
"""Address of the dashboard of a local Dask cluster: any free port, for this machine only."""

_WORKERS = "rag_assay.workers"
"""Module that binds the names of the packages in worker processes, whatever their import path has first."""

_OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Shared memory of a local Ray cluster, near its minimum: only references pass through it."""


@contextmanager
def start_runner(storage: StoragePlan, cache: str | None) -> Iterator[None]:
    """Run the stages that the flow submits in the block on the configured runner.

    Args:
        cache: Cache of answers, as the option.

    Raises:
        ConfigError: The cluster is on other machines, and the cache or the table store is a file of this one.
        MissingDependencyError: The engine is not installed.
        AssayError: The cluster cannot be reached.
    """
    context = FlowRunContext.get()
    if context is None:
        raise RuntimeError("stages must run within a flow")
    runner = runner_of(storage, cache)
    with _enter(runner, storage.runner), cancellable(), context.model_copy(update={"task_runner": runner}):
        yield


def runner_of(storage: StoragePlan, cache: str | None) -> StageRunner:
    """Return the configured runner, limited to the configured number of concurrent stages."""
    if storage.runner.is_elsewhere:
        _refuse_stores_of_this_machine(storage, cache)
    if storage.runner.engine == "dask":
        return _dask(storage)
    if storage.runner.engine == "ray":
        return _ray(storage)
    # Each stage of these shards waits in a thread for its inputs; the schedule limits how many windows are computed.
    return cast("StageRunner", ThreadPoolTaskRunner[Any](max_workers=max_concurrent_shards(storage) * len(STAGES)))


def max_concurrent_shards(storage: StoragePlan) -> int:
    """Return the number of shards that are in the queue at the same time.

    Only these have futures and state in the engine, however long the run is. With threads they are few, so that the
    stages of few rows compete for the prefix cache of a judge server, and enough to keep it busy between two shards.
    """
    if storage.runner.engine == "threads":
        rows = storage.rows_a_window
        return SHARDS_OF_THREADS + AHEAD * rows // max(storage.rows_a_shard, rows)
    return SHARDS_PER_WORKER * storage.stages_at_once


def await_shard(future: PrefectFuture[Any], options: RunnerOptions) -> Any:
    """Wait for a shard that worker processes compute, and return its result.

    While the cluster has no worker, the log of the run says so.

    Raises:
        AssayError: The local cluster has had no worker for two minutes.
        Exception: The error of the shard.
    """
    checks = 0
    while True:
        start = monotonic()
        future.wait(timeout=WORKER_CHECK_SECONDS)
        if monotonic() - start < WORKER_CHECK_SECONDS:
            return future.result()
        checks = 0 if _count_slots(options) else checks + 1
        if checks == 1:
            run_logger().warning("the %s cluster has no worker: the run waits for one", options.engine)
        if checks >= _CHECKS_WITHOUT_WORKERS and not options.is_elsewhere:
            raise AssayError(
                f"the local {options.engine} cluster has no worker: its processes ended, or could not start. What is "
                'computed is kept. Run again; with `runner = "threads"` the run needs no other process.'
            )


def count_processes(storage: StoragePlan) -> int:
    """Return the number of worker processes that may compute shards at the same time.

    A cluster with more processes than `workers` may get every shard of the queue.
    """
    if not storage.runner.is_elsewhere:
        return storage.stages_at_once
    return max(storage.stages_at_once, min(max_concurrent_shards(storage), _count_slots(storage.runner)))


def _count_slots(options: RunnerOptions) -> int:
    """Return the number of tasks that the workers of a cluster compute at the same time."""
    if options.engine == "ray":
        import ray  # noqa: PLC0415 an extra, and slow to import

        return int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call] # only partly typed
    context = FlowRunContext.get()
    return 0 if context is None else sum(cast("Any", context.task_runner).client.nthreads().values())


@contextmanager
def _enter(runner: StageRunner, options: RunnerOptions) -> Iterator[None]:
    if options.engine == "threads":
        with _threads(runner):
            yield
        return
    try:
        runner.__enter__()
        if options.engine == "dask":
            _ = cast("Any", runner).client  # connects, which the runner itself does at the first stage only
    except (OSError, TimeoutError, RuntimeError, ValueError) as error:
        action = "connect to" if options.is_elsewhere else "start"
        address = f" at {options.address}" if options.is_elsewhere else ""
        raise AssayError(f"cannot {action} the {options.engine} cluster{address}: {error}") from error
    try:
        yield
    finally:
        runner.__exit__(None, None, None)


@contextmanager
def _threads(runner: StageRunner) -> Iterator[None]:
    """Wait at the end for the stages that have started, but not for long if the run is cancelled.

    Stages are cancelled too, but one may be in the middle of a batch.
    """
    runner.__enter__()
    timeout = None
    try:
        yield
    except Exception:
        raise
    except BaseException:
        timeout = CANCELLED_SECONDS
        raise
    finally:
        try:
            start_thread("end-of-stages", runner.__exit__, None, None, None).join(timeout)
        except ThreadLimitError:
            runner.__exit__(None, None, None)


def _refuse_stores_of_this_machine(storage: StoragePlan, cache: str | None) -> None:
    missing = [name for name, place in (("tables", storage.tables), ("cache", cache)) if place is None]
    if missing:
        raise ConfigError(
            f"the stages run on the cluster at {storage.runner.address}, but {' and '.join(missing)} would be files of "
            'this machine. Name stores that every worker reaches, such as tables = "s3://bucket/assay" and '
            'cache = "postgresql://assay@db.example/answers".'
        )


def _dask(storage: StoragePlan) -> StageRunner:
    try:
        from prefect_dask.task_runners import DaskTaskRunner  # noqa: PLC0415 an extra, and slow to import
    except ModuleNotFoundError as error:
        raise _missing_dependency("dask", error) from error
    if storage.runner.is_elsewhere:
        return cast("StageRunner", DaskTaskRunner(address=storage.runner.address))
    cluster = {
        "n_workers": storage.stages_at_once,
        "threads_per_worker": 1,
        "dashboard_address": _LOOPBACK,
        "preload": [_WORKERS],
    }
    return cast("StageRunner", DaskTaskRunner(cluster_kwargs=cluster))


def _ray(storage: StoragePlan) -> StageRunner:
    disable_telemetry(RAY)
    try:
        import ray  # noqa: F401, PLC0415 prefect_ray would look for it only when it starts
        from prefect_ray.task_runners import RayTaskRunner  # noqa: PLC0415 an extra, and slow to import
    except ModuleNotFoundError as error:
        raise _missing_dependency("ray", error) from error
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    options["runtime_env"] = {"worker_process_setup_hook": f"{_WORKERS}.open_worker"}
    if not storage.runner.is_elsewhere:
        local = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        options |= {"num_cpus": storage.stages_at_once, **local}
    return cast("StageRunner", RayTaskRunner(address=storage.runner.address or "local", init_kwargs=options))


def _missing_dependency(engine: str, error: ModuleNotFoundError) -> MissingDependencyError:
    return MissingDependencyError(error.name or engine, f'runner = "{engine}"', f"pip install 'rag-assay[{engine}]'")
