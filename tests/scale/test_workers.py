"""Clusters without workers, and workers of another version: a run says what is missing before anything is computed."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import flow, task

from flows.config.runner_options import RunnerOptions
from flows.execution import runners
from flows.execution.runners import await_shard
from metric_core.errors import AssayError, ConfigError
from tasks.engine.worker_terms import WorkerTerms
from tasks.opening.run_models import RunModels
from tests.scale.test_engines import skip_without
from tests.tasks.engine.test_worker_terms import entities_plan

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_server")]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a Dask cluster that has no worker."""
    skip_without("dask")
    from distributed import LocalCluster

    monkeypatch.setattr(runners, "WORKER_CHECK_SECONDS", 0.2)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:  # type: ignore[no-untyped-call]
        yield cluster


def wait_for_shard(cluster: Any, options: RunnerOptions) -> Any:
    """Submit a task to a cluster and wait for it as for a shard."""
    from prefect_dask.task_runners import DaskTaskRunner

    @task
    def compute() -> int:
        return 7

    runner: Any = DaskTaskRunner(address=cluster.scheduler_address)

    @flow(task_runner=runner)
    def run() -> Any:
        return await_shard(compute.submit(), options)

    return run()


def test_local_cluster_without_a_worker_ends_the_run(cluster: Any) -> None:
    with pytest.raises(AssayError, match="the local dask cluster has no worker"):
        wait_for_shard(cluster, RunnerOptions(engine="dask"))


def test_run_on_another_cluster_says_that_it_waits_for_a_worker(cluster: Any) -> None:
    class Help(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "has no worker" in record.getMessage():
                warnings.append(record.getMessage())
                cluster.scale(1)

    warnings: list[str] = []
    logger, handler = logging.getLogger("prefect.flow_runs"), Help()
    logger.addHandler(handler)
    try:
        result = wait_for_shard(cluster, RunnerOptions(engine="dask", address=cluster.scheduler_address))
    finally:
        logger.removeHandler(handler)
    assert result == 7
    assert warnings == ["the dask cluster has no worker: the run waits for one"]


def accept(tables: str, terms: WorkerTerms) -> None:
    terms.accept(entities_plan(Path(tables)), RunModels())


def test_a_dask_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    skip_without("dask")
    from distributed import Client, LocalCluster

    terms = WorkerTerms.of_run(entities_plan(tmp_path), RunModels(), 1)
    older = WorkerTerms(1, terms.versions | {"rag-assay": "0.0.1"})
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        client.submit(accept, str(tmp_path), terms).result()
        with pytest.raises(ConfigError, match=r"the worker process .* rag-assay: .*, the run has 0\.0\.1"):
            client.submit(accept, str(tmp_path), older).result()
