"""Measure how many rows a second one client evaluates if its servers answer at once: a whole `assay run`.

    python -m benchmarks.one_client                # 2,000 rows, eleven metrics
    python -m benchmarks.one_client --rows 500 --no-batch

The entities are kept (an earlier run of the same rows recognized them), the vectors come from a server, and judge and
embedder are one process that answers at once, beside the client. Start, report and everything between count. On a
machine with two cores the server takes one of them: the CPU time of the client per row says what one core can do.

Needs the rows of the peer benchmark in `../shared/peer` beside the repository.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.client_cpu import ROWS, instant_judge, rows
from benchmarks.judge_cost import ASSAY, METRICS, Finished, run_measured
from benchmarks.targets import at_least, at_most, check

ROWS_PER_SECOND, CPU_MS = 50.0, 20.0
"""Targets: rows per second, and CPU milliseconds of the client per row."""
LEAST_ROWS = 2000
"""With fewer rows, a run is mostly its start."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=LEAST_ROWS)
    parser.add_argument("--no-batch", action="store_true", help="a server that knows single requests only")
    options = parser.parse_args()
    if not ROWS.is_file():
        sys.exit(f"the rows are missing: no {ROWS}")
    flags = ["--no-batch"] if options.no_batch else []
    with tempfile.TemporaryDirectory() as folder, instant_judge(*flags) as url:
        source = Path(folder, "rows.jsonl")
        source.write_text("".join(json.dumps(row) + "\n" for row in rows(options.rows)), encoding="utf-8")
        server = {"backend": "server", "server": {"urls": [f"{url}/v1"]}}
        try:
            _run(folder, "entities", {"metrics": "context_entity_recall"})
            before = _stats(url)
            done = _run(folder, "cold", {"metrics": METRICS, "judge": server, "embedder": server})
            after = _stats(url)
            again = _run(folder, "again", {"metrics": METRICS, "judge": server, "embedder": server})
        finally:
            run_measured([ASSAY, "server", "stop"], {"ASSAY_HOME": f"{folder}/home"})
    _print(options.rows, done, again, {name: after[name] - before.get(name, 0) for name in after})


def _run(folder: str, name: str, config: dict[str, Any]) -> Finished:
    file = Path(folder, f"{name}.yaml")
    whole = {**config, "source": f"{folder}/rows.jsonl", "out": f"{folder}/{name}"}
    file.write_text(json.dumps(whole), encoding="utf-8")
    return run_measured([ASSAY, "run", str(file), "--json"], {"ASSAY_HOME": f"{folder}/home"})


def _stats(url: str) -> dict[str, float]:
    with urlopen(f"{url}/stats") as stats:
        counts: dict[str, float] = json.load(stats)
    return counts


def _print(rows: int, done: Finished, again: Finished, counts: dict[str, float]) -> None:
    conversations, marginal = counts["conversations"], 1000 * (done.cpu - again.cpu)
    requests = counts["chat_requests"]
    print(f"{rows:,} rows, per row {conversations / rows:.1f} conversations in {requests / rows:.1f} requests")
    print(f"server: {1000 * counts['cpu_s'] / rows:.1f} ms of CPU per row")
    print(
        f"client: {done.cpu:.1f} s of CPU, {done.wall:.1f} s, {done.memory_mb:.0f} MB; the same run again "
        f"{again.cpu:.1f} s of CPU. Beyond it {marginal / rows:.1f} ms per row, "
        f"{marginal / conversations:.3f} ms per conversation"
    )
    failed = sum(metric["failed"] for metric in json.loads(done.stdout)["metrics"])
    if requests < conversations and rows >= LEAST_ROWS:
        print(at_most("CPU ms of the client per row", 1000 * done.cpu / rows, CPU_MS))
        print(at_least("rows per second", rows / done.wall, ROWS_PER_SECOND))
    else:
        print(f"the targets are for {LEAST_ROWS:,} rows or more, and a server that takes many questions in a request")
    print(check(f"failed cells: {failed}", is_met=failed == 0))


if __name__ == "__main__":
    main()
