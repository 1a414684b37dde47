"""Measure runs that repeat: two rows, many unchanged rows, and many rows one in a hundred of which has changed.

    python -m benchmarks.cached_run                           # two rows, and 10,000 rows again
    python -m benchmarks.cached_run --rows 100000 --changed --formula --shuffled --copies-of 400

Every run is a command of its own, and finds the local Prefect server that the first one has started. Its CPU seconds
include its child processes, its memory is the peak of the largest process. A stub that answers at once judges and
embeds, so the first run is as quick as it can be, and a repetition costs nothing but the client. `--few-metrics` leaves
out the vectors, which come from the stub too, the entities and the ratings.

With `--copies-of N`, a first run computes N rows only. Rows N to 2N, 2N to 3N and so on have the same texts under other
ids; their results are copies of those of the first N with these ids. The run called "first" finds all rows there, which
shows that the copies are what it would compute from cached answers: it asks nothing, or the benchmark ends. Rows that
are changed later have texts of their own. What is not as after a real first night is the store of answers: it holds
those of N rows. With `--shuffled`, the rows also come in other orders, their results scattered over all segments.

Run as a file by the Python of another checkout (`PYTHONPATH=OTHER OTHER/.venv/bin/python benchmarks/cached_run.py`), it
measures the command of that checkout.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.client_cpu import instant_judge
from benchmarks.scale import SCORED
from benchmarks.targets import at_most, check
from deployments.local_server import ServerAddress, ensure_server, stop_server
from deployments.web.http_guard import basic_authorization
from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tasks.rows.records import add_missing_columns
from tasks.rows.row_digests import row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.segment_files import INDEX, ROWS, SegmentNote, decode_index
from tasks.rows.stage_rows import StageRows
from tasks.runs.run_folder import table_name

ASSAY = str(Path(sys.executable).with_name("assay"))
JUDGED = ("faithfulness", "context_precision", "context_recall", "factual_correctness")
SHARD_ROWS = 1000
"""Rows per shard of a run on threads."""
CHANGED = 100
"""One of so many rows is changed."""

TWO_SECONDS, SAME_CPU, CHANGED_CPU, CHANGED_QUESTIONS, MEMORY_MB, TASKS = 2.5, 6.0, 60.0, 0.011, 1500.0, 1000
"""Targets: seconds of two rows again; CPU seconds of 10,000 rows again; CPU seconds, share of the questions and memory
of 100,000 rows with 1 % changed; tasks of a first run of 100,000 rows."""


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
    tasks: int


def main() -> None:
    """Run the selected measurements and print their targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="an empty folder to keep everything in; default: a temporary one")
    parser.add_argument("--changed", action="store_true", help="also run with one row in a hundred changed")
    parser.add_argument("--formula", action="store_true", help="also run with another formula of a metric")
    parser.add_argument("--shuffled", action="store_true", help="also run with the rows in other orders")
    parser.add_argument("--copies-of", type=int, metavar="N", help="compute N rows of the first run, copy the others")
    parser.add_argument("--few-metrics", action="store_true", help="four judged metrics instead of eleven")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, instant_judge() as url:
        folder = options.folder or temporary
        home = Path(folder, "home")
        environment = os.environ | {"ASSAY_HOME": str(home), "COLUMNS": "120"}
        bench = _Bench(Path(folder), url, ensure_server(home), environment, JUDGED if options.few_metrics else SCORED)
        try:
            print("| run | rows | seconds | CPU seconds | peak MB | questions | asked | tasks |")
            print("|---|---:|---:|---:|---:|---:|---:|---:|")
            _print_targets(bench, options.rows, options.copies_of, changed=options.changed)
            _print_orders(bench, options.rows, formula=options.formula, shuffled=options.shuffled)
        finally:
            stop_server(home)


def _print_targets(bench: "_Bench", rows: int, copied: int | None, *, changed: bool) -> None:
    bench.run("two rows", 2)
    two = min((bench.run("two rows again", 2) for _ in range(3)), key=lambda run: run.wall)
    if copied is not None:
        bench.texts = copied
        cold = bench.run("rows to copy", copied)
        bench.copy_rows(copied, rows)
    first = bench.run("first", rows)
    if copied is not None and first.asked:
        sys.exit(f"the copied results are not those of these rows: {first.asked} questions were asked")
    if copied is None:
        cold = first
    same = bench.run("again", rows)
    shards = -(-cold.rows // SHARD_ROWS)
    tasks = 2 + (cold.tasks - 2) * (100_000 // SHARD_ROWS) // shards  # besides shards, a run reads and reports
    lines = [
        f"the first run of {cold.rows:,} rows had {cold.tasks} tasks in {shards} shards",
        at_most("tasks of a first run of 100,000 rows, multiplied from that", tasks, TASKS),
        at_most("two rows again, seconds", two.wall, TWO_SECONDS),
        at_most(f"{rows:,} rows again, CPU seconds", same.cpu, SAME_CPU * max(1, rows / 10_000)),
        check("the same scores again", is_met=bench.scores("first") == bench.scores("again")),
        check(f"asked again: {same.asked}", is_met=same.asked == 0),
    ]
    if changed:
        night = bench.run("one in a hundred changed", rows, changed=True)
        share = night.asked / first.questions
        lines += [
            at_most("1 % changed, CPU seconds", night.cpu, CHANGED_CPU * max(0.1, rows / 100_000)),
            at_most("1 % changed, share of the questions asked", share, CHANGED_QUESTIONS),
            at_most("1 % changed, peak MB", night.memory_mb, MEMORY_MB),
            f"rows with other scores: {bench.count_other_rows('again', 'one in a hundred changed')}",
        ]
    print("\n".join(lines))


def _print_orders(bench: "_Bench", rows: int, *, formula: bool, shuffled: bool) -> None:
    """Run over rows in other orders, and with other formulas, of which every one is new."""
    if formula:
        bench.run("another formula", rows, beta=2)
    if not shuffled:
        return
    for seed in (1, 2):
        bench.run(f"again, order {seed}", rows, seed=seed)
    if formula:
        bench.run("another formula, order 3", rows, seed=3, beta=3)


class _Bench:
    """Runs of one configuration over rows that grow in number and change."""

    def __init__(
        self, folder: Path, url: str, server: ServerAddress, environment: dict[str, str], metrics: tuple[str, ...]
    ) -> None:
        self._folder, self._url, self._environment, self._metrics = folder, url, environment, metrics
        self._server = server
        self.texts: int | None = None
        """Number of rows with texts of their own; None if all have."""

    def run(self, name: str, rows: int, *, changed: bool = False, seed: int | None = None, beta: int = 1) -> Run:
        """Run the command over these rows and print its line.

        Args:
            changed: True if one row in a hundred has other texts.
            seed: Number of the order of the rows; None for that of their ids.
            beta: Parameter of the formula of a metric.
        """
        source = self._folder / f"{rows}.jsonl"
        with source.open("w", encoding="utf-8") as file:
            order = list(range(rows))
            if seed is not None:
                random.Random(seed).shuffle(order)
            for number in order:
                is_changed = changed and number % CHANGED == 0
                text = number if is_changed or self.texts is None else number % self.texts
                file.write(json.dumps({"id": _row_id(number), **_row(text, changed=is_changed)}) + "\n")
        server = {"server": {"urls": [self._url]}}
        formula = "factual_correctness" if beta == 1 else f"factual_correctness(beta={beta})"
        metrics = [formula if each == "factual_correctness" else each for each in self._metrics]
        content: dict[str, Any] = {"source": str(source), "metrics": metrics, "out": self._out(name)}
        content |= {"judge": {"backend": "server", **server}, "embedder": {"backend": "server", **server}}
        config = self._folder / "assay.yaml"
        config.write_text(json.dumps(content), encoding="utf-8")
        earlier = self._count_tasks()
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
        cpu, tasks = used.ru_utime + used.ru_stime, self._count_tasks() - earlier
        done = Run(name, rows, wall, cpu, used.ru_maxrss / 1024, usage["questions"], asked, tasks)
        cells = (name, f"{rows:,}", f"{wall:.1f}", f"{done.cpu:.1f}", f"{done.memory_mb:.0f}", f"{done.questions:,}")
        print(f"| {' | '.join(cells)} | {asked:,} | {tasks} |", flush=True)
        return done

    def copy_rows(self, copied: int, rows: int) -> None:
        """Store the results that rows with the texts of the first ones have.

        Args:
            copied: Number of rows whose results are stored.
            rows: Number of rows whose results are stored afterwards.
        """
        root = str(Path(self._environment["ASSAY_HOME"], "tables"))
        store, folder = RowStore(root), Path(self._out("rows to copy"))
        notes = {stage: _note_of(root, stage) for stage in STAGES if Path(root, ROWS, stage).exists()}
        tables = {stage: pq.read_table(folder / table_name(stage)) for stage in (Stage.SAMPLES, *notes)}
        for first in range(copied, rows, copied):
            copies = {stage: _rename(table, first) for stage, table in tables.items()}
            ids = copies[Stage.SAMPLES]["row_id"].combine_chunks()
            digests = {}
            for stage in sorted(copies, key=list(Stage).index):
                found = StageRows.from_table(stage, add_missing_columns(copies[stage], stage), ids)
                digests[stage] = found.digests
                if stage in notes:
                    note = notes[stage]
                    keys = row_keys(note.recipe, [digests[each] for each in STAGES[stage].reads if each in digests])
                    store.append(stage, note.recipe, found, keys, note.usage)

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

    def _count_tasks(self) -> int:
        """Return the number of task runs that the Prefect server has, once it has all that were reported to it."""
        url, head = f"{self._server.url}/task_runs/count", {"content-type": "application/json"}
        if self._server.credentials is not None:
            head["authorization"] = basic_authorization(self._server.credentials)
        counts = [-1]
        while len(counts) < 2 or counts[-1] != counts[-2]:
            with urllib.request.urlopen(urllib.request.Request(url, b"{}", head)) as reply:
                counts.append(int(reply.read()))
            time.sleep(1)
        return counts[-1]

    def _out(self, name: str) -> str:
        return str(self._folder / name.replace(" ", "-"))


def _note_of(root: str, stage: Stage) -> SegmentNote:
    """Return what the index of the one segment of the copied rows says."""
    (path,) = (
        each for each in Path(root, ROWS, stage).rglob(f"*{INDEX}") if decode_index(each.read_bytes()).keys.size > 2
    )
    return decode_index(path.read_bytes()).note


def _rename(table: pa.Table, first: int) -> pa.Table:
    """Return the rows under the ids of rows with the same texts."""
    ids = [_row_id(int(row_id.removeprefix("row-")) + first) for row_id in table["row_id"].to_pylist()]
    column = table.schema.get_field_index("row_id")
    return table.set_column(column, table.schema.field(column), [ids])


def _row_id(number: int) -> str:
    return f"row-{number}"


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
