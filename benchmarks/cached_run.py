"""Measure runs that repeat: two rows, many rows of which none has changed, and many rows of which one in a hundred has.

    python -m benchmarks.cached_run                           # two rows, and 10,000 rows again
    python -m benchmarks.cached_run --rows 100000 --changed   # 100,000 rows again, and with 1 % changed

Every run is a command of its own; the local Prefect server is already running. Its CPU seconds include its child
processes, its memory is the peak of the largest process. A stub that answers at once judges and embeds, so the first
run is as quick as it can be, and a repetition costs nothing but the client. `--few-metrics` leaves out the vectors,
which come from the stub too, the entities and the ratings.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.client_cpu import instant_judge
from benchmarks.scale import SCORED
from deployments.local_server import ensure_server, stop_server

ASSAY = str(Path(sys.executable).with_name("assay"))
JUDGED = ("faithfulness", "context_precision", "context_recall", "factual_correctness")
CHANGED = 100
"""One of so many rows is changed."""

TWO_SECONDS, SAME_CPU, CHANGED_CPU, CHANGED_QUESTIONS, MEMORY_MB = 2.5, 6.0, 60.0, 0.011, 1500.0
"""Targets: seconds of two rows again; CPU seconds of 10,000 rows again; CPU seconds, share of the questions and memory
of 100,000 rows with 1 % changed."""


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run and its cost."""

    name: str
    rows: int
    wall: float
    cpu: float
    memory_mb: float
    questions: int
    asked: int


def main() -> None:
    """Run the selected measurements and print their targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--changed", action="store_true", help="also run with one row in a hundred changed")
    parser.add_argument("--few-metrics", action="store_true", help="four judged metrics instead of eleven")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, instant_judge() as url:
        home = Path(folder, "home")
        environment = os.environ | {"ASSAY_HOME": str(home), "PREFECT_API_URL": ensure_server(home), "COLUMNS": "120"}
        bench = _Bench(Path(folder), url, environment, JUDGED if options.few_metrics else SCORED)
        try:
            print("| run | rows | seconds | CPU seconds | peak MB | questions | asked |")
            print("|---|---:|---:|---:|---:|---:|---:|")
            _print_targets(bench, options.rows, changed=options.changed)
        finally:
            stop_server(home)


def _print_targets(bench: "_Bench", rows: int, *, changed: bool) -> None:
    bench.run("two rows", 2)
    two = min((bench.run("two rows again", 2) for _ in range(3)), key=lambda run: run.wall)
    first = bench.run("first", rows)
    same = bench.run("again", rows)
    lines = [
        _target("two rows again, seconds", two.wall, TWO_SECONDS),
        _target(f"{rows:,} rows again, CPU seconds", same.cpu, SAME_CPU * max(1, rows / 10_000)),
        f"equal scores: {bench.scores('first') == bench.scores('again')}; asked again: {same.asked}",
    ]
    if changed:
        night = bench.run("one in a hundred changed", rows, changed=True)
        share = night.asked / first.questions
        lines += [
            _target("1 % changed, CPU seconds", night.cpu, CHANGED_CPU * max(0.1, rows / 100_000)),
            _target("1 % changed, share of the questions asked", share, CHANGED_QUESTIONS),
            _target("1 % changed, peak MB", night.memory_mb, MEMORY_MB),
            f"rows with other scores: {bench.count_other_rows('again', 'one in a hundred changed')}",
        ]
    print("\n".join(lines))


def _target(what: str, value: float, limit: float) -> str:
    return f"{'met   ' if value <= limit else 'MISSED'}  {what}: {value:.3g}, target at most {limit:.3g}"


class _Bench:
    """Runs of one configuration over rows that grow in number and change."""

    def __init__(self, folder: Path, url: str, environment: dict[str, str], metrics: tuple[str, ...]) -> None:
        self._folder, self._url, self._environment, self._metrics = folder, url, environment, metrics

    def run(self, name: str, rows: int, *, changed: bool = False) -> Run:
        """Run the command over these rows and print its line."""
        source = self._folder / f"{rows}.jsonl"
        with source.open("w", encoding="utf-8") as file:
            for number in range(rows):
                file.write(json.dumps(_row(number, changed=changed and number % CHANGED == 0)) + "\n")
        server = {"server": {"urls": [self._url]}}
        content: dict[str, Any] = {"source": str(source), "metrics": list(self._metrics), "out": self._out(name)}
        content |= {"judge": {"backend": "server", **server}, "embedder": {"backend": "server", **server}}
        config = self._folder / "assay.yaml"
        config.write_text(json.dumps(content), encoding="utf-8")
        started = time.perf_counter()
        with (self._folder / "log").open("wb") as log:
            command = [ASSAY, "run", str(config), "--json"]
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
            _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit((self._folder / "log").read_text(encoding="utf-8")[-2000:])
        usage = json.loads(Path(self._out(name), "run.json").read_text(encoding="utf-8"))["usage"]
        asked = usage["questions"] - usage["stored"]
        done = Run(name, rows, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, usage["questions"], asked)
        cells = (name, f"{rows:,}", f"{wall:.1f}", f"{done.cpu:.1f}", f"{done.memory_mb:.0f}", f"{done.questions:,}")
        print(f"| {' | '.join(cells)} | {asked:,} |", flush=True)
        return done

    def scores(self, name: str) -> bytes:
        """Return the score table of a run."""
        return Path(self._out(name), "scores.parquet").read_bytes()

    def count_other_rows(self, one: str, other: str) -> int:
        """Return the number of rows, by position, with different scores in two runs."""
        cells = [
            pq.ParquetFile(Path(self._out(name), "scores.parquet")).read(["value", "status", "reason"]).to_pylist()
            for name in (one, other)
        ]
        metrics = len(self._metrics)
        return len({i // metrics for i, (before, after) in enumerate(zip(*cells, strict=True)) if before != after})

    def _out(self, name: str) -> str:
        return str(self._folder / name.replace(" ", "-"))


def _row(number: int, *, changed: bool) -> dict[str, Any]:
    """Return a row with texts of its own, of about 4,000 characters."""
    day = "on Sunday" if changed else "on Monday"
    passages = [
        " ".join(f"Shop {number} in street {place} sells ware {ware} for {ware + place} crowns." for ware in range(17))
        for place in range(4)
    ]
    return {
        "user_input": f"What does shop {number} sell {day}?",
        "response": f"Shop {number} sells tea {day}. Ware {number % 7} costs {number % 11} crowns.",
        "retrieved_contexts": passages,
        "reference": f"Shop {number} sells tea. It is open {day}.",
    }


if __name__ == "__main__":
    main()
