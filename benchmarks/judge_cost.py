"""Measure the cost of a run to the judge and to the client, and compare it with Ragas: requests, tokens, time, memory.

    python -m benchmarks.judge_cost                             # rag-assay, all clocks of the stub judge
    python -m benchmarks.judge_cost --clock gpu --ragas-python ragas/bin/python   # and Ragas, in one run

Needs the data of the peer benchmark in `../shared/peer` beside the repository: the stub judge, the rows, and the
driver of the peer. The stub has three clocks:

- `fixed`: every request takes 200 ms, 64 at once.
- `gpu`: a model of a server with a prefix cache of 400,000 tokens, which computes 20,000 prompt tokens a second.
- `rack`: two such servers with 55,000 tokens a second each, which take many conversations in a request, as vLLM does.
  The peer gets one server as fast as both.

Since it is not a GPU, only ratios are meaningful. Each conversation of a batch counts as a request. The limit of a
clock is the rate at which it computes the uncached prompt tokens that a run sends: P / u rows per second. Decoding does
not count, since the stub decodes beside its prefill. The share of the limit is given for the whole command, with its
start and report, and for the time in which the servers computed all but the first and the last hundredth of the tokens.
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from benchmarks.targets import at_least, at_most

ROOT = Path(__file__).resolve().parents[1]
PEER = ROOT.parent / "shared" / "peer"
METRICS = (
    "faithfulness,answer_relevancy,context_precision,context_recall,answer_similarity,context_entity_recall,"
    "factual_correctness,noise_sensitivity,nv_accuracy,nv_context_relevance,nv_response_groundedness"
)
ASSAY = str(Path(sys.executable).with_name("assay"))
OURS, HALF = "rag-assay run", "rag-assay run, half"
FOREVER = ["--max-seconds", "3600", "--max-requests", "1000000000"]


@dataclass(frozen=True)
class Clock:
    """A way of the stub judge to take its time.

    Args:
        command: Command of a server, without its port.
        rows: Rows to evaluate if none are given.
        replicas: Number of servers.
        prefill: Uncached prompt tokens that all servers compute per second; None without such a limit.
        peer: Command of the server of the peer.
    """

    command: list[str]
    rows: int = 200
    replicas: int = 1
    prefill: int | None = None
    peer: list[str] = field(default_factory=list)


_STUB = [str(PEER / "judge_stub.py"), *FOREVER]
CLOCKS = {
    "fixed": Clock([*_STUB, "--latency-ms", "200", "--concurrency", "64"]),
    "gpu": Clock([*_STUB, "--gpu"], prefill=20_000),
    "rack": Clock(
        ["-m", "benchmarks.modelled_gpu", "--prefill-tps", "55000", "--batches"],
        rows=1000,
        replicas=2,
        prefill=110_000,
        peer=[*_STUB, "--gpu", "--prefill-tps", "110000", "--max-num-seqs", "512"],
    ),
}
PEER_ROWS = 200
"""Rows of the peer at most: at every clock it takes long."""

UNCACHED_TOKENS, OUTPUT_TOKENS, CPU_MS, FIXED_SECONDS, GPU_RATE = 3800, 190, 1.5, 40.0, 4.9
"""Targets: tokens per sample, client CPU per request, wall time at the fixed clock, samples per second at `gpu`."""
SHARES = {"gpu": 0.95, "rack": 0.9}
"""Targets: share of the limit of a clock while its servers are asked."""


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
    busy_s: float = 0.0
    """Seconds in which the servers computed all but the first and the last hundredth of the uncached tokens."""

    @property
    def limit(self) -> float | None:
        """Rows per second at the most; None without a limit."""
        prefill = CLOCKS[self.clock].prefill
        return None if prefill is None else prefill * self.samples / self.uncached_tokens

    @property
    def share(self) -> float | None:
        """Share of the limit that the whole command reached."""
        return None if self.limit is None else self.rate / self.limit

    @property
    def busy_share(self) -> float | None:
        """Share of the limit while the servers were asked."""
        prefill = CLOCKS[self.clock].prefill
        return None if prefill is None else _WITHOUT_ENDS * self.uncached_tokens / self.busy_s / prefill

    @property
    def rate(self) -> float:
        return self.samples / self.wall

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu / max(1, self.requests)


_END = 0.01
_WITHOUT_ENDS = 1 - 2 * _END


def main() -> None:
    """Run the selected benchmarks and print the table."""
    options = _options()
    if not (PEER / "judge_stub.py").is_file():
        sys.exit(f"the stub judge is missing: no {PEER / 'judge_stub.py'}")
    costs = []
    for clock in CLOCKS if options.clock == "all" else [options.clock]:
        given = argparse.Namespace(**{**vars(options), "samples": options.samples or CLOCKS[clock].rows})
        costs.append(_run_ours(clock, given))
        if options.marginal:
            half = argparse.Namespace(**{**vars(given), "samples": given.samples // 2})
            costs.append(replace(_run_ours(clock, half), name=HALF))
        costs.append(_ask_alone(clock, given))
        if options.ragas_python is not None:
            peer = argparse.Namespace(**{**vars(given), "samples": min(given.samples, PEER_ROWS)})
            costs.append(_run_peer(clock, peer))
    _print(costs)
    if options.out is not None:
        options.out.write_text(json.dumps([vars(cost) for cost in costs], indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clock", choices=[*CLOCKS, "all"], default="all")
    parser.add_argument("--samples", type=int, help="rows; 200, at the clock rack 1,000")
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
            with _serve(CLOCKS["fixed"]) as servers:
                _evaluate(servers.urls, folder, "first", argparse.Namespace(**{**vars(options), "samples": 1}))
            with _serve(CLOCKS[clock]) as servers:
                done = _evaluate(servers.urls, folder, "run", options)
                cost = _cost(OURS, clock, options.samples, servers, done)
        finally:
            run_measured([ASSAY, "server", "stop"], {"ASSAY_HOME": f"{folder}/home"})
        return replace(cost, failed=sum(metric["failed"] for metric in json.loads(done.stdout)["metrics"]))


def _evaluate(urls: list[str], folder: str, name: str, options: argparse.Namespace) -> "Finished":
    config: dict[str, Any] = {
        "source": _write_rows(folder, options.samples),
        "metrics": METRICS,
        "out": f"{folder}/{name}",
        "judge": {"backend": "server", "server": {"urls": urls}},
    }
    if options.concurrency is not None:
        config["judge"]["server"]["concurrency"] = options.concurrency
    if options.shard_rows is not None:
        config["shard_rows"] = options.shard_rows
    if options.embedder == "server":
        config["embedder"] = {"backend": "server", "server": {"urls": urls[:1]}}
    file = Path(folder, f"{name}.yaml")
    file.write_text(json.dumps(config), encoding="utf-8")
    return run_measured([ASSAY, "run", str(file), "--json"], {"ASSAY_HOME": f"{folder}/home"})


def _write_rows(folder: str, count: int) -> str:
    """Write as many rows of the peer benchmark as wanted, and return the file."""
    file = Path(folder, f"rows-{count}.jsonl")
    printed = subprocess.run([sys.executable, str(PEER / "bench_data.py"), str(count)], check=True, capture_output=True)
    file.write_bytes(printed.stdout)
    return str(file)


def _ask_alone(clock: str, options: argparse.Namespace) -> Cost:
    """Measure the judge client alone: the same kinds of questions, without stages, entities and report."""
    with tempfile.TemporaryDirectory() as folder, _serve(CLOCKS[clock]) as servers:
        rows = _write_rows(folder, options.samples)
        command = [sys.executable, "-m", "benchmarks.judge_client", ",".join(servers.urls), rows, str(options.samples)]
        done = run_measured([*command, *([] if options.concurrency is None else [str(options.concurrency)])], {})
        measured = json.loads(done.stdout)
        cost = _cost("judge client alone", clock, options.samples, servers, done)
        return replace(cost, **measured)


def _run_peer(clock: str, options: argparse.Namespace) -> Cost:
    """Measure the peer on the same rows and metrics. Its times exclude its imports; ours include them."""
    served = CLOCKS[clock]
    served = replace(served, command=served.peer or served.command, replicas=1)
    with tempfile.TemporaryDirectory() as folder, _serve(served) as servers:
        out = Path(folder, "peer.json")
        port = servers.urls[0].rsplit(":", 1)[1]
        command = [str(options.ragas_python), str(PEER / "ragas_bench.py"), "--port", port]
        command += ["--samples", str(options.samples), "--workers", str(options.ragas_workers), "--out", str(out)]
        done = run_measured(command, {"RAGAS_DO_NOT_TRACK": "true"})
        measured = json.loads(out.read_text(encoding="utf-8"))
        cost = _cost(f"ragas {measured['ragas']}", clock, options.samples, servers, done)
        return replace(cost, wall=measured["wall_s"], cpu=measured["cpu_s"], failed=sum(measured["nan"].values()))


@dataclass(frozen=True)
class Finished:
    """Output and cost of a finished command."""

    stdout: bytes
    wall: float
    cpu: float
    memory_mb: float


def run_measured(command: list[str], environment: dict[str, str]) -> Finished:
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
    return Finished(printed, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


class _Servers:
    """Running stub judges, and a thread that notes how many uncached tokens they have computed, and when."""

    def __init__(self, urls: list[str]) -> None:
        self.urls = urls
        self._progress: list[tuple[float, int]] = []
        self._end = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stats(self) -> dict[str, int]:
        """Return the counts of all servers, added up."""
        replies = [_get(f"{url}/stats") for url in self.urls]
        return {name: sum(reply[name] for reply in replies) for name, one in replies[0].items() if isinstance(one, int)}

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join()

    def busy_seconds(self) -> float:
        """Return the seconds between the first and the last hundredth of the uncached tokens."""
        last = self._progress[-1][1]
        begin = max(at for at, tokens in self._progress if tokens <= _END * last)
        end = min(at for at, tokens in self._progress if tokens >= (1 - _END) * last)
        return max(end - begin, _INTERVAL)

    def _watch(self) -> None:
        while not self._end.wait(_INTERVAL):
            try:
                stats = self.stats()
            except (OSError, HTTPException):  # the stub cannot tell while its first reply is due
                continue
            tokens = stats["est_prompt_tokens"] - stats["est_cached_tokens"]
            self._progress.append((time.monotonic(), tokens))


_INTERVAL = 0.25


@contextmanager
def _serve(clock: Clock) -> Iterator[_Servers]:
    """Run the stub judges of a clock on free ports."""
    with ExitStack() as stack:
        servers = _Servers([stack.enter_context(_stub(clock.command)) for _ in range(clock.replicas)])
        stack.callback(servers.close)
        yield servers


@contextmanager
def _stub(command: list[str]) -> Iterator[str]:
    """Run a stub judge on a free port, and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    quiet = subprocess.DEVNULL
    command = [sys.executable, *command, "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet)
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


def _cost(name: str, clock: str, samples: int, servers: _Servers, done: Finished) -> Cost:
    stats = servers.stats()
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
        busy_s=servers.busy_seconds(),
    )


def _print(costs: list[Cost]) -> None:
    head = ["", "clock", "samples", "requests", "prompt tok/sample", "uncached", "output", "wall s", "samples/s"]
    rows = [[*head, "limit", "share", "while asked", "CPU s", "CPU ms/request", "peak MB", "failed cells"]]
    for cost in costs:
        per_sample = [cost.prompt_tokens, cost.uncached_tokens, cost.output_tokens]
        cells = [cost.name, cost.clock, str(cost.samples), str(cost.requests)]
        cells += [*(f"{tokens / cost.samples:.0f}" for tokens in per_sample), f"{cost.wall:.1f}", f"{cost.rate:.2f}"]
        cells += ["" if cost.limit is None else f"{cost.limit:.2f}", *map(_percent, (cost.share, cost.busy_share))]
        cells += [f"{cost.cpu:.1f}", f"{cost.cpu_ms:.2f}"]
        rows.append([*cells, f"{cost.memory_mb:.0f}", str(cost.failed)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for name, *numbers in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *cells]))
    for line in [*_targets(costs), *_marginal(costs), *_ratios(costs)]:
        print(line)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _targets(costs: list[Cost]) -> Iterator[str]:
    for cost in (cost for cost in costs if cost.name == OURS):
        yield at_most(f"{cost.clock}: output tokens per sample", cost.output_tokens / cost.samples, OUTPUT_TOKENS)
        if cost.clock == "gpu":
            yield at_most("gpu: uncached tokens per sample", cost.uncached_tokens / cost.samples, UNCACHED_TOKENS)
        if cost.samples < CLOCKS[cost.clock].rows:
            yield f"{cost.clock}: the other targets are for {CLOCKS[cost.clock].rows} samples or more"
            continue
        yield at_most(f"{cost.clock}: CPU ms per request of the whole run", cost.cpu_ms, CPU_MS)
        if cost.clock == "fixed":
            yield at_most("fixed: wall seconds for 200 samples", 200 / cost.rate, FIXED_SECONDS)
        if cost.clock == "gpu":
            yield at_least("gpu: samples per second", cost.rate, GPU_RATE)
        if cost.busy_share is not None:
            what = f"{cost.clock}: share of the limit while the servers are asked"
            yield at_least(what, cost.busy_share, SHARES[cost.clock])


def _marginal(costs: list[Cost]) -> Iterator[str]:
    for half in (cost for cost in costs if cost.name == HALF):
        whole = next(cost for cost in costs if cost.name == OURS and cost.clock == half.clock)
        more = 1000 * (whole.cpu - half.cpu) / (whole.requests - half.requests)
        yield f"{half.clock}: CPU ms per request beyond the first {half.requests} requests: {more:.2f}"


def _ratios(costs: list[Cost]) -> Iterator[str]:
    for peer in (cost for cost in costs if cost.name.startswith("ragas")):
        ours = next(cost for cost in costs if cost.clock == peer.clock)
        fields = ("wall", "prompt_tokens", "uncached_tokens", "output_tokens", "cpu")
        wall, tokens, uncached, output, cpu = (
            getattr(peer, name) / peer.samples / (getattr(ours, name) / ours.samples) for name in fields
        )
        yield (
            f"{peer.clock}: the peer takes {wall:.1f} times the time per sample, {tokens:.1f} times the prompt tokens "
            f"({uncached:.1f} uncached), {output:.1f} times the output tokens, {cpu:.1f} times the CPU time"
        )


if __name__ == "__main__":
    main()
