"""A Dask cluster as a process of its own: prints its address, and ends when its input does."""

import sys

from distributed import LocalCluster


def main() -> None:
    """Serves until the input ends."""
    with LocalCluster(  # type: ignore[no-untyped-call] # dask is typed by halves
        n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
