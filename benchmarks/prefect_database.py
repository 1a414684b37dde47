"""Measure how the database of the local Prefect server grows with nightly runs, with and without pruning.

Each night monitors eight rows, all of whose stages are computed, and then the dates of the whole database are moved a
day into the past. Every ten nights the server starts again, since it prunes at its start (and every hour), and the size
is printed.

    PYTHONPATH=.:deployments/public python benchmarks/prefect_database.py 100
"""

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

from deployments.local_server import ensure_server, local_server, stop_server, use_server

ROOT = Path(__file__).parents[1]
STEP = 10
SETTLED = 30.0
"""Seconds after which the server has pruned."""


def main() -> None:
    """Print the size of the database every ten nights, pruned and not."""
    for name, settings in (("pruned", dict(local_server.RETENTION)), ("as Prefect does by default", {})):
        with tempfile.TemporaryDirectory() as folder:
            for night in range(STEP, int(sys.argv[1]) + 1, STEP):
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    pool.submit(run_nights, Path(folder), settings).result()
                rows, size = measure(Path(folder))
                print(f"{name}: {night} nights, {size / 1e6:.2f} MB, {rows}", flush=True)


def run_nights(home: Path, settings: Mapping[str, str]) -> None:
    """Run some nights on a server with these settings, and stop it once it has pruned."""
    os.environ |= {"ASSAY_HOME": str(home), "PREFECT_LOGGING_LEVEL": "CRITICAL"}
    os.chdir(home)
    local_server.RETENTION = settings
    with use_server(ensure_server(home)):
        _run_nights(home)
        time.sleep(SETTLED)
    stop_server(home)


def _run_nights(home: Path) -> None:
    from flows.config.run_config import RunConfig  # noqa: PLC0415 with the settings of the server
    from flows.monitor import run_monitor  # noqa: PLC0415

    config = RunConfig.model_validate(
        {
            "name": "nightly",
            "source": str(ROOT / "examples" / "handbook.jsonl"),
            "limit": 8,
            "metrics": ["faithfulness", "answer_relevancy"],
            "refresh": ["samples", "claims", "questions", "verdicts", "similarity"],
        }
    )
    for _ in range(STEP):
        run_monitor(config)
        time.sleep(1)
        move_dates(home)


def move_dates(home: Path) -> None:
    """Move all dates of the database a day into the past."""
    with closing(sqlite3.connect(home / "prefect" / "prefect.db", timeout=60)) as database, database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = database.execute(f"PRAGMA table_info({table})").fetchall()
            dates = [column[1] for column in columns if column[2] in ("DATETIME", "TIMESTAMP")]
            if dates:
                changes = ", ".join(f"{date} = date({date}, '-1 day') || substr({date}, 11)" for date in dates)
                database.execute(f"UPDATE {table} SET {changes}")


def measure(home: Path) -> tuple[str, int]:
    """Return the numbers of rows and the size of the database in bytes."""
    file = home / "prefect" / "prefect.db"
    with closing(sqlite3.connect(file)) as database:
        names = ("flow_run", "task_run", "log", "artifact", "events")
        rows = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    return ", ".join(f"{count} {name}" for name, count in rows.items()), file.stat().st_size


if __name__ == "__main__":
    main()
