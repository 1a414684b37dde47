"""Measure what runs cost that are cold, repeat, or change a little; two checkouts side by side, with their ratios.

    python -m benchmarks.engine_cost                                          # this checkout, 100,000 rows: an hour
    python -m benchmarks.engine_cost --old ../before --new .                  # beside another one
    python -m benchmarks.engine_cost --old ../before --new . --rows 5000      # quicker; the ratios say less
    python -m benchmarks.engine_cost --old ../before --prepare --folder kept  # make and keep the stores of one side
    python -m benchmarks.engine_cost --old ../before --new . --folder kept --only changed --only formula

A checkout is a folder with a `.venv` in which it is installed. Each side has a home, a local Prefect server and stores
under `--folder`, and computes its first night itself, whichever layout its stores have: 2,000 rows from the judge, then
all rows, which repeat the texts of the first 2,000 under other ids and so are answered from the cache. A judge that
answers at once judges and embeds. Every measurement is a command: its CPU seconds are those of all its processes, its
memory is the peak of the largest one, and the CPU seconds of the Prefect server have a column of their own.

- `two`: two rows whose answers and tables are kept, from the command to the prompt; the quickest of five.
- `cold`: 2,000 rows of which nothing is known; the entities are kept, as in `one_client.py`.
- `again`: 10,000 rows of which none has changed.
- `changed`: all rows, of which one in a hundred has changed, with eleven metrics.
- `formula`: all rows after a change of a formula: the code of the checkout with one more comment in `metric_core`.
- `tokens`: prompt tokens per row that the prefix caches of two servers lack, given the order of the questions, as
  `judge_cost.py --clock rack` of the checkout counts them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.client_cpu import instant_judge
from benchmarks.scale import SCORED
from benchmarks.targets import at_least, at_most

PARTS = ("two", "cold", "again", "changed", "formula", "tokens")
PACKAGES = ("deployments", "flows", "metric_core", "tasks")
TEXTS, AGAIN, LARGE, CHANGED = 2000, 10_000, 100_000, 100
"""Rows with texts of their own, rows evaluated again, rows of the large night, and one of how many that changes."""
TICKS = os.sysconf("SC_CLK_TCK")
TWO_SECONDS, COLD_RATE, AGAIN_CPU, TOKENS = 2.2, 80.0, 3.0, 3560.0
CHANGED_CPU, CHANGED_MB, FORMULA_CPU, FORMULA_MB = 35.0, 800.0, 60.0, 1000.0
"""Targets; those of changed rows and formulas are for 100,000 rows."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a command.

    Args:
        wall: Seconds from its start to its end.
        cpu: CPU seconds of its processes.
        server: CPU seconds of the Prefect server meanwhile.
        memory_mb: Peak of the largest process.
        asked: Questions that the judge was asked.
        rows: Number of rows.
    """

    wall: float
    cpu: float
    server: float
    memory_mb: float
    asked: int
    rows: int


class Side:
    """A checkout with its home and its stores.

    Args:
        name: Name in the table.
        checkout: Folder of the checkout.
        folder: Folder of its home, stores, sources and runs.
        url: Address of the judge.
    """

    def __init__(self, name: str, checkout: Path, folder: Path, url: str) -> None:
        self.name, self.checkout, self.folder, self._url = name, checkout.resolve(), folder.resolve(), url
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "ASSAY_"))}
        self._environment = kept | {"ASSAY_HOME": str(self.folder / "home"), "COLUMNS": "120"}

    def prepare(self, rows: int) -> None:
        """Compute the first night of two, 10,000 and all rows, unless that is done."""
        for number in sorted({2, TEXTS, AGAIN, rows}):
            if not (self.folder / f"prepared-{number}").exists():
                cost = self.run(number)
                print(f"{self.name}: prepared {number:,} rows in {cost.wall:.0f} s, {cost.cpu:.0f} CPU s", flush=True)
                (self.folder / f"prepared-{number}").touch()

    def run(self, rows: int, *, changed: str = "", code: Path | None = None, **options: Any) -> Cost:
        """Run the command over rows, and return its cost.

        Args:
            rows: Number of rows.
            changed: Text that one in a hundred rows has and that no earlier night had; empty for unchanged rows.
            code: Folder with the packages to run; None for those of the checkout.
            **options: Further options of the run.
        """
        source, out = self.folder / f"{rows}.jsonl", self.folder / "runs" / f"run-{rows}"
        with source.open("w", encoding="utf-8") as file:
            for number in range(rows):
                file.write(json.dumps(make_row(number, changed if number % CHANGED == 0 else "")) + "\n")
        server = {"backend": "server", "server": {"urls": [f"{self._url}/v1"]}}
        content = {"source": str(source), "metrics": list(SCORED), "out": str(out), "judge": server, "embedder": server}
        config = self.folder / "run.yaml"
        config.write_text(json.dumps(content | options), encoding="utf-8")
        python, environment = self.checkout / ".venv" / "bin" / "python", dict(self._environment)
        command = [str(self.checkout / ".venv" / "bin" / "assay")]
        if code is not None:
            environment["PYTHONPATH"] = os.pathsep.join((str(code), str(code / "deployments" / "public")))
            command = [str(python), "-m", "rag_assay"]
        before = self._server_seconds()
        started = time.perf_counter()
        with (self.folder / "log").open("wb") as log:
            arguments = [*command, "run", str(config), "--json"]
            process = subprocess.Popen(arguments, env=environment, cwd=self.folder, stdout=log, stderr=log)
            _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit((self.folder / "log").read_text(encoding="utf-8")[-2000:])
        usage = json.loads((out / "run.json").read_text(encoding="utf-8"))["usage"]
        cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        server_cpu = max(0.0, self._server_seconds() - before)
        return Cost(wall, cpu, server_cpu, memory, usage["questions"] - usage["stored"], rows)

    def run_cold(self) -> Cost:
        """Run rows of which nothing is known but the entities."""
        stores: dict[str, Any] = {name: str(self.folder / f"cold-{name}") for name in ("tables", "cache")}
        shutil.rmtree(stores["tables"], ignore_errors=True)
        Path(stores["cache"]).unlink(missing_ok=True)
        self.run(TEXTS, **stores, metrics=["context_entity_recall"])
        return self.run(TEXTS, **stores)

    def run_two(self) -> Cost:
        """Run two rows again five times, and return the cost of the quickest run."""
        return min((self.run(2) for _ in range(5)), key=lambda cost: cost.wall)

    def run_after_formula_change(self, rows: int) -> Cost:
        """Run all rows with a copy of the code in which a formula has one more comment."""
        with tempfile.TemporaryDirectory() as folder:
            for package in PACKAGES:
                shutil.copytree(
                    self.checkout / package, Path(folder, package), ignore=shutil.ignore_patterns("__pycache__")
                )
            formula = Path(folder, "metric_core", "metrics", "faithfulness.py")
            formula.write_text(f"{formula.read_text(encoding='utf-8')}# {time.time_ns()}\n", encoding="utf-8")
            self.run(2, code=Path(folder))  # compiles the modules
            return self.run(rows, code=Path(folder))

    def count_tokens(self) -> float:
        """Return the uncached prompt tokens per row at two servers with prefix caches, by `judge_cost.py`."""
        figures = self.folder / "judge_cost.json"
        command = [str(self.checkout / ".venv" / "bin" / "python"), "-m", "benchmarks.judge_cost", "--clock", "rack"]
        arguments = [*command, "--out", str(figures)]
        done = subprocess.run(arguments, cwd=self.checkout, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr[-2000:])
        whole_run: dict[str, float] = json.loads(figures.read_text(encoding="utf-8"))[0]
        return whole_run["uncached_tokens"] / whole_run["samples"]

    def stop(self) -> None:
        """Stop the Prefect server."""
        command = [str(self.checkout / ".venv" / "bin" / "assay"), "server", "stop"]
        subprocess.run(command, env=self._environment, cwd=self.folder, capture_output=True, check=False)

    def _server_seconds(self) -> float:
        """Return the CPU seconds that the Prefect server of this home has used, 0 if none runs."""
        home, total = str(self.folder / "home"), 0.0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes().decode(errors="replace").split("\0")
                if f"PREFECT_HOME={home}/prefect" in environment:
                    fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                    total += (int(fields[11]) + int(fields[12])) / TICKS
            except OSError:
                continue
        return total


def make_row(number: int, changed: str) -> dict[str, Any]:
    """Return a row of about 4,000 characters, with the texts of one of the first rows unless it has changed."""
    text, day = number % TEXTS if not changed else number, changed or "on Monday"
    passages = [
        " ".join(f"Shop {text} in street {place} sells ware {ware} for {ware + place} crowns." for ware in range(17))
        for place in range(4)
    ]
    return {
        "id": f"row-{number}",
        "user_input": f"What does shop {text} sell {day}?",
        "response": f"Shop {text} sells tea {day}. Ware {text % 7} costs {text % 11} crowns.",
        "retrieved_contexts": passages,
        "reference": f"Shop {text} sells tea. It is open {day}.",
    }


def main() -> None:
    """Prepare the stores, run the measurements of both sides, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="checkout to compare with")
    parser.add_argument("--new", type=Path, help="checkout to measure; default: this one, unless --old is prepared")
    parser.add_argument("--rows", type=int, default=LARGE, help="rows of the large night")
    parser.add_argument("--folder", type=Path, help="folder that keeps the stores; default: a temporary one")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure only this; can be repeated")
    parser.add_argument("--prepare", action="store_true", help="make the stores, and measure nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, instant_judge() as url:
        folder = options.folder or Path(temporary)
        here = None if options.prepare and options.old is not None else Path(__file__).parents[1]
        checkouts = {"old": options.old, "new": options.new or here}
        sides = [Side(name, path, folder / name, url) for name, path in checkouts.items() if path is not None]
        try:
            if options.prepare or {"again", "changed", "formula"}.intersection(options.only or PARTS):
                for side in sides:
                    side.prepare(options.rows)
            if not options.prepare:
                measure(sides, options.only or PARTS, options.rows)
        finally:
            for side in sides:
                side.stop()


def measure(sides: list[Side], parts: list[str] | tuple[str, ...], rows: int) -> None:
    """Measure one part after the other, the sides in turn, and print a line for each."""
    night = f"on day {time.time_ns() % 10**9}"
    runs: Mapping[str, Callable[[Side], Cost]] = {
        "two": Side.run_two,
        "cold": Side.run_cold,
        "again": lambda side: side.run(AGAIN),
        "changed": lambda side: side.run(rows, changed=night),
        "formula": lambda side: side.run_after_formula_change(rows),
    }
    print("| part | side | rows | seconds | CPU seconds | of the server | peak MB | asked | rows/s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for part in (each for each in parts if each in runs):
        costs = []
        for side in sides:
            costs.append(cost := runs[part](side))
            print(f"| {part} | {side.name} | {describe(cost)} |", flush=True)
        for line in targets(part, costs[-1]):
            print(f"  {line}", flush=True)
        if len(costs) == 2:
            old, new = costs
            print(
                f"  {part}: new / old: seconds {new.wall / old.wall:.2f}, CPU {new.cpu / old.cpu:.2f}, "
                f"memory {new.memory_mb / old.memory_mb:.2f}",
                flush=True,
            )
    for side in sides if "tokens" in parts else ():
        print(f"{side.name}: {at_most('uncached prompt tokens per row', side.count_tokens(), TOKENS)}", flush=True)


def targets(part: str, cost: Cost) -> list[str]:
    """Return lines about the targets that a measurement has."""
    if part == "two":
        return [at_most("seconds", cost.wall, TWO_SECONDS)]
    if part == "cold":
        return [at_least("rows per second", cost.rows / cost.wall, COLD_RATE)]
    if part == "again":
        return [at_most("CPU seconds", cost.cpu, AGAIN_CPU)]
    cpu, memory = (CHANGED_CPU, CHANGED_MB) if part == "changed" else (FORMULA_CPU, FORMULA_MB)
    if cost.rows < LARGE:
        return [f"the targets are for {LARGE:,} rows"]
    return [at_most("CPU seconds", cost.cpu, cpu), at_most("peak MB", cost.memory_mb, memory)]


def describe(cost: Cost) -> str:
    """Return the cells of a line of the table."""
    figures = f"{cost.rows:,} | {cost.wall:.1f} | {cost.cpu:.1f} | {cost.server:.1f} | {cost.memory_mb:.0f}"
    return f"{figures} | {cost.asked:,} | {cost.rows / cost.wall:.1f}"


if __name__ == "__main__":
    main()
