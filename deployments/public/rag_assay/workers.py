"""Open the packages of rag-assay in a worker process of a Dask or Ray cluster, before it receives a stage.

A worker imports the function of a stage by name. Where the worker's folder has a `tasks.py`, the name would lead there.
Clusters that `assay` starts do this on their own; a Dask worker that is started manually takes
`--preload rag_assay.workers`.
"""

from rag_assay._packages import open_packages

__all__ = ["open_worker"]


def open_worker() -> None:
    """Open the packages: the setup hook of Ray's worker processes.

    The process is set up like that of a command. Without that, it takes so long to collect its models at its end that
    Dask kills it.
    """
    open_packages(alone=True)
    from tasks.runtime.start_up import tune_process  # noqa: PLC0415 its packages are open only now

    tune_process()


def dask_setup(worker: object) -> None:
    """Open the packages: Dask calls this in each worker that preloads the module."""
    del worker
    open_worker()
