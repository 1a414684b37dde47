"""Measure the cost of a run without judging, by number of rows, to find what limits runs of millions of rows.

    python benchmarks/scale.py tasks                    # CPU and memory per Prefect task, by engine
    python benchmarks/scale.py tasks --engine dask
    python benchmarks/scale.py reporting --rows 1000000 # summary and report: seconds and memory
    python -m benchmarks.scale workers --engine ray     # one and two workers with a judge that takes 200 ms

`tasks` runs one cheap metric over the same rows in few and in many shards; the difference is what a task costs. CPU
seconds vary less than wall time on a shared machine. They include the processes that a run starts and waits for: the
workers of Dask, not those of Ray. `workers` also kills one of two workers in mid-run, which must change no score.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
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
SHARD_ROWS = 2000
ROWS_OF_A_SHARD, CONCURRENCY = 20, 4
"""With so few rows and requests at a time, a worker waits for the judge most of the time."""
_ANSWER = {"user_input": "Where did Anna Byrne open the shop?", "response": "In Dublin. It sells tea."}


def main() -> None:
    """Run the selected measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tasks", "reporting", "workers"])
    parser.add_argument("--rows", type=int, help="default 800 for tasks, 720 for workers, else 100,000")
    parser.add_argument("--engine", choices=["threads", "dask", "ray"], default="threads")
    parser.add_argument("--shards", type=int, nargs=2, default=(8, 200), help="few and many, for tasks")
    options = parser.parse_args()
    if options.what == "tasks":
        measure_tasks(options.rows or 800, options.engine, options.shards)
    elif options.what == "workers":
        measure_workers(options.rows or 720, options.engine)
    else:
        measure_reporting(options.rows or 100_000)


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


def measure_workers(rows: int, engine: str) -> None:
    """Print the seconds of the first run with one worker and with two, and of one whose worker is killed."""
    from benchmarks.client_cpu import instant_judge  # noqa: PLC0415 needs the package

    with tempfile.TemporaryDirectory() as folder, instant_judge("--no-batch", "--delay", "0.2") as url:
        source = Path(folder, "rows.jsonl")
        source.write_text("\n".join(json.dumps(_row(number) | _ANSWER) for number in range(rows)), encoding="utf-8")
        server = {"backend": "server", "server": {"urls": [f"{url}/v1"], "concurrency": CONCURRENCY}}
        seconds, scores = {}, {}
        for name, workers in (("one", 1), ("two", 2), ("killed", 2)):
            config = {"metrics": "faithfulness", "judge": server, "shard_rows": ROWS_OF_A_SHARD, "workers": workers}
            own = {each: f"{folder}/{name}.{each}" for each in ("tables", "cache")}
            kill = seconds["two"] / 2 if name == "killed" else None
            seconds[name], _, memory = _run(folder, name, engine, config | own, kill)
            scores[name] = Path(folder, name, "scores.parquet").read_bytes()
            print(f"{engine}, {name}: {seconds[name]:.1f} s, {memory:.0f} MB at most", flush=True)
        _run_measured([ASSAY, "server", "stop"], folder)
    print(f"{engine}: two workers take {seconds['one'] / seconds['two']:.2f} times as much as one")
    print(f"the same scores: {len(set(scores.values())) == 1}")


def _row(number: int) -> dict[str, Any]:
    reference = f"Anna Byrne opened shop {number} in Dublin."
    return {"id": f"r{number}", "retrieved_contexts": [f"Shop {number} is in Dublin."], "reference": reference}


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
    process = Popen(
        command, cwd=ROOT, env=os.environ | {"ASSAY_HOME": f"{folder}/home"}, stdout=DEVNULL, stderr=DEVNULL
    )
    if kill is not None:
        Timer(kill, _kill_worker, (process.pid,)).start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}")
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _kill_worker(pid: int) -> None:
    """Kill the busiest process that a run has started."""
    from tests.prefect_servers import descendants  # noqa: PLC0415 needs the package

    command = ["ps", "-o", "cputimes=,pid=,comm=", "-p", ",".join(map(str, descendants(pid)))]
    listed = run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    _, busiest, name = max((line.split(maxsplit=2) for line in listed), key=lambda each: int(each[0]))
    print(f"kills {name}", flush=True)
    os.kill(int(busiest), SIGKILL)


def measure_reporting(rows: int) -> None:
    """Print the cost of each part of the reporting stage for a run with random scores."""
    from tasks.reports.run import write_run as reporting  # noqa: PLC0415 the other measurement does not need them
    from tasks.runs.run_folder import RunFolder  # noqa: PLC0415

    for module, name in (
        (RunFolder, "write_tables"),
        (RunFolder, "summarize_scores"),
        (reporting, "count_findings"),
        (reporting, "write_report"),
    ):
        setattr(module, name, _timed(name, getattr(module, name)))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "run", "stages").mkdir(parents=True)
        tables = _tables(f"{folder}/tables", rows)
        print(f"made {rows:,} rows, {_peak():.0f} MB at most")
        settings = reporting.ReportingSettings(folder=f"{folder}/run", metrics=_metrics(), manifest=_manifest(rows))
        reporting.write_run(tables, settings, lambda _done, _more: None)


def _timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        wall, cpu = time.monotonic(), time.process_time()
        result = function(*arguments)
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        print(f"{name}: {wall:.1f} s, {cpu:.1f} s of CPU, {_peak():.0f} MB at most so far", flush=True)
        return result

    return timed


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _metrics() -> tuple[Any, ...]:
    from metric_core.metrics.registry import resolve  # noqa: PLC0415
    from tasks.options.metric_settings import MetricSettings  # noqa: PLC0415

    return tuple(MetricSettings.from_request(resolve(name).request()) for name in SCORED)


def _tables(root: str, rows: int) -> Any:
    """Store samples and random scores, in shards."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from metric_core.schemas import SAMPLES, SCORES  # noqa: PLC0415
    from tasks.rows.computed_tables import RunTables  # noqa: PLC0415
    from tasks.rows.row_store import RowStore  # noqa: PLC0415
    from tasks.rows.stage_rows import StageRows  # noqa: PLC0415
    from tasks.rows.table_store import TableStore  # noqa: PLC0415
    from tasks.runtime.usage import StageUsage  # noqa: PLC0415

    store, generator, samples, places = RowStore(root), np.random.default_rng(1), [], []
    for start in range(0, rows, SHARD_ROWS):
        numbers = range(start, min(rows, start + SHARD_ROWS))
        ids = [f"{number:032x}" for number in numbers]
        texts = {"user_input": "When does it open?", "response": "At nine.", "reference": "At ten."}
        columns: dict[str, Any] = {
            name: pa.nulls(len(ids), SAMPLES.arrow.field(name).type) for name in SAMPLES.arrow.names
        }
        columns |= {name: [text] * len(ids) for name, text in texts.items()}
        columns |= {"row_id": ids, "row_number": list(numbers), "retrieved_contexts": [["It opens at ten."]] * len(ids)}
        samples.append(TableStore(root).write(pa.table(columns)))
        cells = len(ids) * len(SCORED)
        values = np.round(6 * generator.random(cells)) / 6
        values[:: len(SCORED)] = generator.random(len(ids))  # one metric has a different value in each row
        scores: dict[str, Any] = {field.name: pa.nulls(cells, field.type) for field in SCORES.arrow}
        scores |= {"row_id": np.repeat(ids, len(SCORED)), "metric": list(SCORED) * len(ids), "value": values}
        table = pa.table(scores | {"status": ["scored"] * cells}, schema=SCORES.arrow)
        found = StageRows.from_table(SCORES.stage, table, pa.array(ids))
        places.append(store.append(SCORES.stage, None, found, found.digests, StageUsage()))
    return RunTables(store, samples, {SCORES.stage: places}, {})


def _manifest(rows: int) -> dict[str, Any]:
    from tasks.record.run_record import FORMAT  # noqa: PLC0415

    model = dict.fromkeys(("model", "revision", "note", "pipeline", "version", "backend", "name"), "none")
    models = dict.fromkeys(("judge", "embedder", "language"), model)
    return {"format": FORMAT, "run_id": "benchmark", "rows_read": rows, "versions": {"rag-assay": "0"}, **models}


if __name__ == "__main__":
    main()
