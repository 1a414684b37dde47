"""Measure the cost of a run to the judge and to the client, and compare it with Ragas: requests, tokens, time, memory.

    python benchmarks/judge_cost.py                             # rag-assay, both clocks of the stub judge
    python benchmarks/judge_cost.py --clock gpu --ragas-python ragas/bin/python

Needs the data of the peer benchmark in `../shared/peer` beside the repository: the stub judge, the rows, and the
driver of the peer. The stub has two clocks: `fixed` (every request takes 200 ms, 64 at once) and `gpu` (a model of a
server with a prefix cache and a shared budget of prompt tokens). Since it is no GPU, only ratios are meaningful.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
PEER = ROOT.parent / "shared" / "peer"
METRICS = (
    "faithfulness,answer_relevancy,context_precision,context_recall,answer_similarity,context_entity_recall,"
    "factual_correctness,noise_sensitivity,nv_accuracy,nv_context_relevance,nv_response_groundedness"
)
ASSAY = str(Path(sys.executable).with_name("assay"))
OURS, HALF = "rag-assay run", "rag-assay run, half"
CLOCKS = {"fixed": ["--latency-ms", "200", "--concurrency", "64"], "gpu": ["--gpu"]}

UNCACHED_TOKENS, OUTPUT_TOKENS, CPU_MS, FIXED_SECONDS, GPU_RATE = 4500, 190, 1.5, 40.0, 4 * 1.07
"""Targets: tokens per sample, client CPU per request, wall time at the fixed clock, samples per second at `gpu`."""


@dataclass(frozen=True)
class Cost:
    """Cost of one run."""

    name: str
    clock: str
    samples: int
    requests: int
    prompt_tokens: int
    uncached_tokens: int
    output_tokens: int
    wall: float
    cpu: float
    memory_mb: float
    failed: int

    @property
    def rate(self) -> float:
        return self.samples / self.wall

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu / max(1, self.requests)


def main() -> None:
    """Run the selected benchmarks and print the table."""
    options = _options()
    if not (PEER / "judge_stub.py").is_file():
        sys.exit(f"the stub judge is missing: no {PEER / 'judge_stub.py'}")
    costs = []
    for clock in CLOCKS if options.clock == "both" else [options.clock]:
        costs.append(_run_ours(clock, options))
        if options.marginal:
            half = argparse.Namespace(**{**vars(options), "samples": options.samples // 2})
            costs.append(replace(_run_ours(clock, half), name=HALF))
        costs.append(_ask_alone(clock, options))
        if options.ragas_python is not None:
            costs.append(_run_peer(clock, options))
    _print(costs)
    if options.out is not None:
        options.out.write_text(json.dumps([vars(cost) for cost in costs], indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clock", choices=[*CLOCKS, "both"], default="both")
    parser.add_argument("--samples", type=int, default=200, help="rows, at most 200")
    parser.add_argument("--concurrency", type=int, help="requests in flight of rag-assay, instead of its default")
    parser.add_argument("--shard-rows", type=int, help="rows per shard of rag-assay, instead of its default")
    parser.add_argument(
        "--marginal", action="store_true", help="also run half of the rows, to measure CPU time without start-up"
    )
    parser.add_argument("--embedder", choices=["server", "packaged"], default="server", help="embedder of rag-assay")
    parser.add_argument("--ragas-python", type=Path, help="a Python with ragas: also runs the peer")
    parser.add_argument("--ragas-workers", type=int, default=16, help="workers of the peer")
    parser.add_argument("--out", type=Path, help="file for the figures as JSON")
    return parser.parse_args()


def _run_ours(clock: str, options: argparse.Namespace) -> Cost:
    """Measure a whole command-line run: reading, judging, entities, scores, report.

    The local Prefect server is already running, as after a first run.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            with _stub("fixed") as url:
                _evaluate(url, folder, "first", argparse.Namespace(**{**vars(options), "samples": 1}))
            with _stub(clock) as url:
                done = _evaluate(url, folder, "run", options)
                cost = _cost(OURS, clock, options.samples, url, done)
        finally:
            _run_measured([ASSAY, "server", "stop"], {"ASSAY_HOME": f"{folder}/home"})
        return replace(cost, failed=sum(metric["failed"] for metric in json.loads(done.stdout)["metrics"]))


def _evaluate(url: str, folder: str, name: str, options: argparse.Namespace) -> "_Finished":
    config: dict[str, Any] = {
        "source": str(PEER / "bench_rows.jsonl"),
        "limit": options.samples,
        "metrics": METRICS,
        "out": f"{folder}/{name}",
        "judge": {"backend": "server", "server": {"urls": [url]}},
    }
    if options.concurrency is not None:
        config["judge"]["server"]["concurrency"] = options.concurrency
    if options.shard_rows is not None:
        config["shard_rows"] = options.shard_rows
    if options.embedder == "server":
        config["embedder"] = {"backend": "server", "server": {"urls": [url]}}
    file = Path(folder, f"{name}.yaml")
    file.write_text(json.dumps(config), encoding="utf-8")
    return _run_measured([ASSAY, "run", str(file), "--json"], {"ASSAY_HOME": f"{folder}/home"})


def _ask_alone(clock: str, options: argparse.Namespace) -> Cost:
    """Measure the judge client alone: the same kinds of questions, without stages, entities and report."""
    with _stub(clock) as url:
        client = Path(__file__).with_name("judge_client.py")
        command = [sys.executable, str(client), url, str(PEER / "bench_rows.jsonl"), str(options.samples)]
        done = _run_measured([*command, *([] if options.concurrency is None else [str(options.concurrency)])], {})
        measured = json.loads(done.stdout)
        cost = _cost("judge client alone", clock, options.samples, url, done)
        return replace(cost, **measured)


def _run_peer(clock: str, options: argparse.Namespace) -> Cost:
    """Measure the peer on the same rows and metrics. Its times exclude its imports; ours include them."""
    with tempfile.TemporaryDirectory() as folder, _stub(clock) as url:
        out = Path(folder, "peer.json")
        command = [str(options.ragas_python), str(PEER / "ragas_bench.py"), "--port", url.rsplit(":", 1)[1]]
        command += ["--samples", str(options.samples), "--workers", str(options.ragas_workers), "--out", str(out)]
        done = _run_measured(command, {"RAGAS_DO_NOT_TRACK": "true"})
        measured = json.loads(out.read_text(encoding="utf-8"))
        cost = _cost(f"ragas {measured['ragas']}", clock, options.samples, url, done)
        return replace(cost, wall=measured["wall_s"], cpu=measured["cpu_s"], failed=sum(measured["nan"].values()))


@dataclass(frozen=True)
class _Finished:
    """Output and cost of a finished command."""

    stdout: bytes
    wall: float
    cpu: float
    memory_mb: float


def _run_measured(command: list[str], environment: dict[str, str]) -> _Finished:
    """Run a command and measure it; exit with its output if it fails."""
    with tempfile.TemporaryFile() as stdout:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=stdout)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        printed = stdout.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}: {printed.decode()[-2000:]}")
    return _Finished(printed, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


@contextmanager
def _stub(clock: str) -> Iterator[str]:
    """Run the stub judge on a free port, and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(PEER / "judge_stub.py"), "--port", str(port), *CLOCKS[clock]]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                _get(f"{url}/health")
                break
            except URLError:
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def _get(url: str) -> Any:
    with urlopen(Request(url), timeout=30) as response:
        return json.load(response)


def _cost(name: str, clock: str, samples: int, url: str, done: _Finished) -> Cost:
    stats = _get(f"{url}/stats")
    return Cost(
        name=name,
        clock=clock,
        samples=samples,
        requests=stats["chat_requests"] + stats["embed_requests"],
        prompt_tokens=stats["est_prompt_tokens"],
        uncached_tokens=stats["est_prompt_tokens"] - stats["est_cached_tokens"],
        output_tokens=stats["est_completion_tokens"],
        wall=done.wall,
        cpu=done.cpu,
        memory_mb=done.memory_mb,
        failed=0,
    )


def _print(costs: list[Cost]) -> None:
    head = ["", "clock", "requests", "prompt tok/sample", "uncached", "output", "wall s", "samples/s"]
    rows = [[*head, "CPU s", "CPU ms/request", "peak MB", "failed cells"]]
    for cost in costs:
        per_sample = [cost.prompt_tokens, cost.uncached_tokens, cost.output_tokens]
        cells = [cost.name, cost.clock, str(cost.requests), *(f"{tokens / cost.samples:.0f}" for tokens in per_sample)]
        cells += [f"{cost.wall:.1f}", f"{cost.rate:.2f}", f"{cost.cpu:.1f}", f"{cost.cpu_ms:.2f}"]
        rows.append([*cells, f"{cost.memory_mb:.0f}", str(cost.failed)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for name, *numbers in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *cells]))
    for line in [*_targets(costs), *_marginal(costs), *_ratios(costs)]:
        print(line)


def _targets(costs: list[Cost]) -> Iterator[str]:
    for cost in costs:
        if cost.name == OURS:
            yield _target(f"{cost.clock}: CPU ms per request of the whole run", cost.cpu_ms, CPU_MS)
            yield _target(f"{cost.clock}: output tokens per sample", cost.output_tokens / cost.samples, OUTPUT_TOKENS)
        if cost.name == OURS and cost.clock == "fixed":
            yield _target("fixed: wall seconds for 200 samples", 200 / cost.rate, FIXED_SECONDS)
        if cost.name == OURS and cost.clock == "gpu":
            yield _target("gpu: uncached tokens per sample", cost.uncached_tokens / cost.samples, UNCACHED_TOKENS)
            yield _target("gpu: seconds per sample", 1 / cost.rate, 1 / GPU_RATE)


def _target(what: str, value: float, limit: float) -> str:
    return f"{'met   ' if value <= limit else 'MISSED'}  {what}: {value:.3g}, target at most {limit:.3g}"


def _marginal(costs: list[Cost]) -> Iterator[str]:
    for half in (cost for cost in costs if cost.name == HALF):
        whole = next(cost for cost in costs if cost.name == OURS and cost.clock == half.clock)
        more = 1000 * (whole.cpu - half.cpu) / (whole.requests - half.requests)
        yield f"{half.clock}: CPU ms per request beyond the first {half.requests} requests: {more:.2f}"


def _ratios(costs: list[Cost]) -> Iterator[str]:
    for peer in (cost for cost in costs if cost.name.startswith("ragas")):
        ours = next(cost for cost in costs if cost.clock == peer.clock)
        tokens, uncached = peer.prompt_tokens / ours.prompt_tokens, peer.uncached_tokens / ours.uncached_tokens
        yield (
            f"{peer.clock}: the peer takes {peer.wall / ours.wall:.1f} times the time, {tokens:.1f} times the prompt "
            f"tokens ({uncached:.1f} uncached), {peer.output_tokens / ours.output_tokens:.1f} times the output tokens, "
            f"{peer.cpu / ours.cpu:.1f} times the CPU time"
        )


if __name__ == "__main__":
    main()
