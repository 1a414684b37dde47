"""Measure the cost of a run without judging, by number of rows, to find what limits runs of millions of rows.

    python benchmarks/scale.py tasks                    # CPU and memory per Prefect task, by engine
    python benchmarks/scale.py tasks --engine dask
    python -m benchmarks.scale workers --engine ray     # one and two workers with a judge that takes 200 ms
    python -m benchmarks.scale workers --engine ray --unjudged --rows 100000
    python -m benchmarks.scale order --rows 80000       # results of a stage read in order, and in another order
    python -m benchmarks.scale growth --rows 1000000    # runs of four sizes, and with one to eight metrics

`tasks` runs one cheap metric over the same rows in few and in many shards; the difference is what a task costs. CPU
seconds vary less than wall time on a shared machine. They include the processes that a run starts and waits for: the
workers of Dask, not those of Ray. `workers` also kills one of two workers in mid-run, which must change no score.
`growth` computes metrics that ask no judge, for the first time and again, and extrapolates the line through four sizes
to ten million rows.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL, Popen, run
from threading import Timer
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ASSAY = str(Path(sys.executable).with_name("assay"))
METRIC = "context_entity_recall"
STAGES = 2
"""Stages of METRIC that work shard by shard: entities, which are cached, and aggregation."""

SCORED = (
    *("faithfulness", "answer_relevancy", "context_precision", "context_recall", "answer_similarity"),
    *("context_entity_recall", "factual_correctness", "noise_sensitivity"),
    *("nv_accuracy", "nv_context_relevance", "nv_response_groundedness"),
)
UNJUDGED = (
    *("string_similarity", "id_context_precision", "id_context_recall", "non_llm_context_recall"),
    *("non_llm_context_precision", "dangling_citations", "string_similarity(distance=hamming)"),
    "string_similarity(distance=jaro)",
)
"""Metrics that ask nothing and load no model."""
TEN_MILLION = 10_000_000

ROWS_OF_A_SHARD, CONCURRENCY = 20, 4
"""With so few rows and requests at a time, a worker waits for the judge most of the time."""
_ANSWER = {"user_input": "Where did Anna Byrne open the shop?", "response": "In Dublin. It sells tea."}


def main() -> None:
    """Run the selected measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tasks", "workers", "order", "growth"])
    help_rows = "default 800 for tasks, 720 for workers, 80,000 for order and growth"
    parser.add_argument("--rows", type=int, help=help_rows)
    parser.add_argument("--unjudged", action="store_true", help="metrics that ask nothing, for workers")
    parser.add_argument("--engine", choices=["threads", "dask", "ray"], default="threads")
    parser.add_argument("--shards", type=int, nargs=2, default=(8, 200), help="few and many, for tasks")
    options = parser.parse_args()
    if options.what == "order":
        measure_order(options.rows or 80_000)
    elif options.what == "growth":
        measure_growth(options.rows or 80_000)
    elif options.what == "tasks":
        measure_tasks(options.rows or 800, options.engine, options.shards)
    else:
        measure_workers(options.rows or 720, options.engine, is_judged=not options.unjudged)


def measure_tasks(rows: int, engine: str, shards: tuple[int, int]) -> None:
    """Print the cost of a run in few and in many shards, and the difference per task."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rows.jsonl")
        source.write_text("\n".join(json.dumps(_row(number)) for number in range(rows)), encoding="utf-8")
        options = {"metrics": [METRIC]}
        _run(folder, "first", engine, options)  # starts the local Prefect server and fills the cache
        few, many = (
            _run(folder, str(n), engine, options | {"shard_rows": -(-rows // n), "tables": f"{folder}/{n}.tables"})
            for n in shards
        )
        _run_measured([ASSAY, "server", "stop"], folder)
    more = STAGES * (shards[1] - shards[0])
    for count, (wall, cpu, memory) in zip(shards, (few, many), strict=True):
        print(f"{engine}: {count} shards: {wall:.1f} s, {cpu:.1f} s of CPU, {memory:.0f} MB at most")
    print(
        f"{engine}: a task takes {1000 * (many[0] - few[0]) / more:.0f} ms, {1000 * (many[1] - few[1]) / more:.0f} ms "
        f"of CPU; 1,000 tasks take {1000 * (many[2] - few[2]) / more:.0f} MB"
    )


def measure_workers(rows: int, engine: str, *, is_judged: bool) -> None:
    """Print the seconds of the first run with one worker and with two, and of one whose worker is killed."""
    from benchmarks.client_cpu import instant_judge  # noqa: PLC0415 needs the package

    with tempfile.TemporaryDirectory() as folder, instant_judge("--no-batch", "--delay", "0.2") as url:
        source = Path(folder, "rows.jsonl")
        source.write_text("\n".join(json.dumps(_row(number) | _ANSWER) for number in range(rows)), encoding="utf-8")
        server = {"backend": "server", "server": {"urls": [f"{url}/v1"], "concurrency": CONCURRENCY}}
        judged = {"metrics": "faithfulness", "judge": server, "shard_rows": ROWS_OF_A_SHARD}
        seconds, scores = {}, {}
        for name, workers in (("one", 1), ("two", 2), ("killed", 2)):
            config = (judged if is_judged else {"metrics": [*UNJUDGED[:3]]}) | {"workers": workers}
            own = {each: f"{folder}/{name}.{each}" for each in ("tables", "cache")}
            kill = seconds["two"] / 2 if name == "killed" else None
            seconds[name], _, memory = _run(folder, name, engine, config | own, kill)
            scores[name] = Path(folder, name, "scores.parquet").read_bytes()
            print(f"{engine}, {name}: {seconds[name]:.1f} s, {memory:.0f} MB at most", flush=True)
        _run_measured([ASSAY, "server", "stop"], folder)
    print(f"{engine}: two workers take {seconds['one'] / seconds['two']:.2f} times as much as one")
    print(f"the same scores: {len(set(scores.values())) == 1}")


def measure_growth(most: int) -> None:
    """Print the cost of runs without a judge by rows and by metrics, and lines through it."""
    import numpy as np  # noqa: PLC0415 the other measurements do not need the package

    sizes = [most // 8, most // 4, most // 2, most]
    print("| rows | metrics | run | seconds | CPU seconds | peak MB | folder MB | report MB |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    found: dict[str, list[tuple[float, float]]] = {"first": [], "again": []}
    with tempfile.TemporaryDirectory() as folder:
        _run_unjudged(folder, "to start the server", 100, 1)
        for rows in sizes:
            for name, results in found.items():
                results.append(_run_unjudged(folder, name, rows, 3))
        for metrics in (1, 2, 4, 8):
            _run_unjudged(folder, f"first of {metrics}", sizes[0], metrics)
        _run_measured([ASSAY, "server", "stop"], folder)
    for name, results in found.items():
        for what, values in zip(("CPU seconds", "peak MB"), zip(*results, strict=True), strict=True):
            slope, start = np.polyfit(sizes, values, 1)
            off = np.abs(np.polyval((slope, start), sizes) / values - 1).max()
            print(
                f"{name}: {what} = {start:.0f} + {1e6 * slope:.0f} per million rows, at most {100 * off:.0f} % beside "
                f"the line; ten million rows: {start + slope * TEN_MILLION:,.0f}"
            )


def _run_unjudged(folder: str, name: str, rows: int, metrics: int) -> tuple[float, float]:
    """Evaluate rows, print the cost, and return CPU seconds and peak memory."""
    source = Path(folder, f"{rows}.jsonl")
    if not source.exists():
        with source.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(_row(number) | _ANSWER) + "\n" for number in range(rows))
    out = Path(folder, f"{name} {rows}")
    options = {"source": str(source), "out": str(out), "metrics": [*UNJUDGED[:metrics]]}
    wall, cpu, memory = _run(folder, f"{name} {rows}", "threads", options)
    disk = sum(each.stat().st_size for each in out.iterdir() if each.is_file()) / 1e6
    report = (out / "report.html").stat().st_size / 1e6
    print(
        f"| {rows:,} | {metrics} | {name} | {wall:.1f} | {cpu:.1f} | {memory:.0f} | {disk:.1f} | {report:.2f} |",
        flush=True,
    )
    return cpu, memory


def measure_order(rows: int) -> None:
    """Print the cost of looking up and reading the results of a stage, in the order of the rows and in another one."""
    import numpy as np  # noqa: PLC0415 the other measurements do not need the package
    import pyarrow as pa  # noqa: PLC0415

    from metric_core.stages import Stage  # noqa: PLC0415
    from tasks.rows import segment_reader  # noqa: PLC0415
    from tasks.rows.computed_tables import RunTables  # noqa: PLC0415
    from tasks.rows.records import build_table  # noqa: PLC0415
    from tasks.rows.row_store import RowStore  # noqa: PLC0415
    from tasks.rows.stage_rows import StageRows  # noqa: PLC0415
    from tasks.runtime.usage import StageUsage  # noqa: PLC0415

    opened: list[str] = []
    open_stored = segment_reader.open_stored

    def count(path: str, *others: Any) -> Any:
        opened.append(path)
        return open_stored(path, *others)

    segment_reader.open_stored = count
    stage, recipe, keys = Stage.QUESTIONS, "benchmark", []
    with tempfile.TemporaryDirectory() as root:
        for first in range(0, rows, 1000):
            ids = [f"r{number}" for number in range(first, min(rows, first + 1000))]
            cells = {"noncommittal": False, "status": "answered"}
            records = [{"row_id": row, "k": k, "text": f"{row} {k} " * 30, **cells} for row in ids for k in range(3)]
            found = StageRows.from_table(stage, build_table(stage, records), pa.array(ids))
            keys.append(found.digests)
            RowStore(root).append(stage, recipe, found, found.digests, StageUsage())
        stored, other = np.concatenate(keys), np.random.default_rng(1).permutation(rows)
        for name, order in (("in order", np.arange(rows)), ("in another order", other)):
            opened.clear()
            store, started = RowStore(root), time.process_time()
            shards = [store.find(stage, recipe, stored[order[first:][:1000]]) for first in range(0, rows, 1000)]
            found_at = time.process_time()
            read = sum(table.num_rows for table in RunTables(store, [], {stage: shards}, {}).shards(stage))
            print(
                f"{rows:,} rows {name}: looked up in {found_at - started:.2f} s of CPU, {read:,} results read in "
                f"{time.process_time() - found_at:.2f} s from {len(opened):,} segments"
            )


def _row(number: int) -> dict[str, Any]:
    reference = f"Anna Byrne opened shop {number} in Dublin."
    ids = {"retrieved_context_ids": [f"d{number % 1000}", "d1"], "reference_context_ids": [f"d{number % 999}"]}
    contexts = [f"Shop {number} is in Dublin.", "Dublin is in Ireland."]
    return {
        "id": f"r{number}",
        "retrieved_contexts": contexts,
        "reference": reference,
        "reference_contexts": contexts[:1],
        **ids,
    }


def _run(
    folder: str, name: str, engine: str, options: dict[str, Any], kill: float | None = None
) -> tuple[float, float, float]:
    config = {"source": f"{folder}/rows.jsonl", "runner": engine, "out": f"{folder}/{name}"}
    file = Path(folder, f"{name}.yaml")
    file.write_text(json.dumps(config | options), "utf-8")
    return _run_measured([ASSAY, "run", str(file)], folder, kill)


def _run_measured(command: list[str], folder: str, kill: float | None = None) -> tuple[float, float, float]:
    """Return wall and CPU seconds of a process and its children, and its peak memory in megabytes.

    Args:
        command: The command.
        folder: Folder of its files.
        kill: Seconds after which the process below it with the most CPU time is killed; None to kill none.
    """
    start = time.monotonic()
    environment = os.environ | {"ASSAY_HOME": f"{folder}/home"}
    with Path(folder, "said").open("wb") as said:
        process = Popen(command, cwd=ROOT, env=environment, stdout=DEVNULL, stderr=said)
    if kill is not None:
        Timer(kill, _kill_worker, (process.pid,)).start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(
            f"{' '.join(command)} failed with {process.returncode}: {Path(folder, 'said').read_text('utf-8')[-2000:]}"
        )
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _kill_worker(pid: int) -> None:
    """Kill the busiest process that a run has started."""
    from tests.prefect_servers import descendants  # noqa: PLC0415 needs the package

    command = ["ps", "-o", "cputimes=,pid=,comm=", "-p", ",".join(map(str, descendants(pid)))]
    listed = run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    _, busiest, name = max((line.split(maxsplit=2) for line in listed), key=lambda each: int(each[0]))
    print(f"kills {name}", flush=True)
    os.kill(int(busiest), SIGKILL)


if __name__ == "__main__":
    main()
