"""Measure the report of runs of many sizes: CPU seconds, size and memory.

    python -m benchmarks.report_page --rows 40 4000 100000 1000000 [--trees FOLDER ...]

The run folders are written directly, as a run leaves them: a row has four passages of 800 characters, each of which ten
rows show, eight claims, 38 verdicts and four scores. Each report is written by a process of its own, in each of the
trees in turn, which are checkouts of this project, by default this one. Imports and the first templates do not count.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.records import Direction, Score
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from metric_core.statistics.summary import summarize
from tasks.runs.run_folder import table_name
from tests.run_records import record_json

METRICS = ("faithfulness", "context_precision", "context_recall", "factual_correctness")
SHARD_ROWS, PASSAGES, ROWS_OF_A_PASSAGE, CLAIMS = 1000, 4, 10, 8
STAGES = (Stage.SAMPLES, Stage.CLAIMS, Stage.VERDICTS, Stage.AGGREGATION)
_MEASURED = """
import resource, sys, time
from pathlib import Path
from tasks.reports.run.report_page import load_templates, write_report
from tasks.runtime.start_up import defer_pandas
defer_pandas()
load_templates()
start = time.process_time()
page = write_report(Path(sys.argv[1]), out=Path(sys.argv[2]))
seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{seconds:.2f} | {page.stat().st_size / 1e6:.2f} | {peak:.0f}")
"""


def main() -> None:
    """Write runs, and print what their reports cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[40, 4000, 100_000])
    parser.add_argument("--trees", type=Path, nargs="+", default=[Path(__file__).parents[1]])
    options = parser.parse_args()
    print("| rows | tree | CPU seconds | MB | peak MB |\n|---:|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            write_run(Path(folder, str(rows)), rows)
            for tree in options.trees:
                command = [sys.executable, "-c", _MEASURED, f"{folder}/{rows}", f"{folder}/report.html"]
                done = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True)
                print(f"| {rows:,} | {tree.name} | {done.stdout.strip()} |", flush=True)


def write_run(folder: Path, rows: int) -> None:
    """Write the folder of a finished run."""
    (folder / "stages").mkdir(parents=True)
    files = {stage: (folder / table_name(stage), SCHEMAS[stage].arrow) for stage in STAGES}
    writers = {stage: pq.ParquetWriter(*file, compression="zstd") for stage, file in files.items()}
    generator = np.random.default_rng(1)
    passages = [_passage(number) for number in range(max(PASSAGES, rows * PASSAGES // ROWS_OF_A_PASSAGE))]
    for start in range(0, rows, SHARD_ROWS):
        numbers = range(start, min(rows, start + SHARD_ROWS))
        shown = generator.integers(len(passages), size=(len(numbers), PASSAGES))
        for stage, columns in _tables(numbers, [[passages[i] for i in each] for each in shown], generator):
            schema, count = SCHEMAS[stage].arrow, len(columns["row_id"])
            whole = {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in schema}
            writers[stage].write_table(pa.table(whole, schema=schema))
    for writer in writers.values():
        writer.close()
    summaries = [summarize(name, Direction.HIGHER, [Score.scored(i / 40) for i in range(41)]) for name in METRICS]
    metrics = [{"key": name, "name": name, "direction": "higher", "bounds": [0, 1]} for name in METRICS]
    stages = {stage: {"rows": rows} for stage in STAGES}
    record = record_json(rows=rows, rows_read=rows, metrics=metrics, stages=stages)
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    summary = {"rows": rows, "metrics": [asdict(each) for each in summaries]}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def _passage(number: int) -> str:
    return " ".join(f"Shop {number} in street {i} sells ware {i * number % 97} for {i + 3} crowns." for i in range(16))


def _tables(
    numbers: range, shown: list[list[str]], generator: np.random.Generator
) -> Iterator[tuple[Stage, Mapping[str, Any]]]:
    ids, count = [f"{number * 2_654_435_761 % 2**32:08x}-{number}" for number in numbers], len(numbers)
    claims = [f"response:{i}" for i in range(CLAIMS)]
    premises = [f"context:{i}" for i in range(PASSAGES)]
    judged = [("support", claim, premise) for claim in claims for premise in premises]
    judged += [("support", claim, "contexts") for claim in claims[:2]]
    judged += [("usefulness_for_reference", "", premise) for premise in premises]
    answers = [f"Shop {number} sells tea on Monday. Ware {number % 97} costs 5 crowns." for number in numbers]
    questions = [f"What does shop {number} sell on Monday?" for number in numbers]
    samples = {"row_number": [*numbers], "user_input": questions, "response": answers, "reference": answers}
    yield Stage.SAMPLES, {"row_id": ids, **samples, "retrieved_contexts": shown}
    texts = [f"Shop {number} sells ware {i}." for number in numbers for i in range(CLAIMS)]
    answered = {"side": ["response"] * len(texts), "status": ["answered"] * len(texts), "text": texts}
    yield Stage.CLAIMS, {"row_id": np.repeat(ids, CLAIMS), "claim_id": claims * count, **answered}
    names = zip(("kind", "claim_id", "premise"), zip(*judged, strict=True), strict=True)
    verdicts: dict[str, Any] = {name: [*values] * count for name, values in names}
    size = len(judged) * count
    verdicts |= {"verdict": generator.integers(2, size=size), "probability": generator.random(size)}
    yield Stage.VERDICTS, {"row_id": np.repeat(ids, len(judged)), **verdicts, "status": ["answered"] * size}
    cells, metrics = len(METRICS) * count, [*METRICS] * count
    scores = {"value": generator.integers(9, size=cells) / 8, "status": ["scored"] * cells}
    yield Stage.AGGREGATION, {"row_id": np.repeat(ids, len(METRICS)), "metric": metrics, **scores}


if __name__ == "__main__":
    main()
