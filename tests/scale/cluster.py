"""A Dask cluster in a separate process, which prints its address and ends when its input is closed."""

import sys

from distributed import LocalCluster


def main() -> None:
    """Serve until the input is closed."""
    with LocalCluster(  # type: ignore[no-untyped-call] # dask is only partly typed
        n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
