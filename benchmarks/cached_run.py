"""Measure a run whose stage tables are all cached, relative to the run that computed them.

    python benchmarks/cached_run.py --rows 10000

Rows without common texts are evaluated by a fake judge server in a separate process. Its answers cost almost nothing,
so the ratio is the worst case: any real judge makes the cold run longer. A third run finds no tables but all answers.
Every run is a separate process; the Prefect server is started before.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deployments.local_server import ensure_server, stop_server
from tests.faults.conftest import Server
from tests.faults.test_killed import METRICS, rows

ASSAY = Path(sys.executable).with_name("assay")


@contextmanager
def judge(log: Path, builtin: bool) -> Iterator[tuple[object, Path]]:
    """Yield the configuration of a judge, and the log of the requests to its server."""
    if builtin:
        yield "builtin", log
        return
    server = Server("-m", "tests.faults.stub_server", "--log", str(log), "--max-seconds", "3600")
    server.start()
    try:
        yield {"backend": "server", "server": {"urls": [server.url]}}, log
    finally:
        server.stop()


def requests(log: Path) -> int:
    """Count the requests in the log."""
    if not log.exists():
        return 0
    with log.open("rb") as lines:
        return sum(1 for _ in lines)


def time_run(config: Path, out: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Run in a separate process and return its wall and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    command = [str(ASSAY), "run", str(config), "--out", str(out), "--json"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    return time.perf_counter() - started, used


def measure(folder: Path, count: int, builtin: bool) -> None:
    """Run cold, with cached tables and with cached answers, and print one line per run."""
    source, config = folder / "rows.jsonl", folder / "assay.yaml"
    source.write_text("\n".join(json.dumps(row) for row in rows(count)), encoding="utf-8")
    home = folder / "home"
    environment = os.environ | {"ASSAY_HOME": str(home), "PREFECT_API_URL": ensure_server(home), "COLUMNS": "120"}
    try:
        with judge(folder / "requests.jsonl", builtin) as (judge_config, log):
            print("| run | seconds | CPU seconds | requests | share of the cold run |")
            print("|---|---:|---:|---:|---:|")
            cold = 0.0
            for name, tables in (("cold", "tables"), ("cached tables", "tables"), ("cached answers", "other-tables")):
                content = {
                    "source": str(source),
                    "metrics": METRICS,
                    "judge": judge_config,
                    "tables": str(folder / tables),
                }
                config.write_text(json.dumps(content), encoding="utf-8")
                before = requests(log)
                seconds, used = time_run(config, folder / name.replace(" ", "-"), environment)
                cold = cold or seconds
                print(
                    f"| {name} | {seconds:.1f} | {used:.1f} | {requests(log) - before:,} | {seconds / cold:.3f} |",
                    flush=True,
                )
            first, second, third = (
                (folder / name / "scores.parquet").read_bytes() for name in ("cold", "cached-tables", "cached-answers")
            )
            print(f"equal scores: {first == second == third}")
    finally:
        stop_server(home)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--builtin", action="store_true", help="use the builtin judge instead of a server")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.rows, options.builtin)


if __name__ == "__main__":
    main()
