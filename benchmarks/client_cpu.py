"""Measure the CPU time of the judge client and the answer cache per question, against a server that answers at once.

    python -m benchmarks.client_cpu                       # 2,000 rows: cold, then everything kept
    python -m benchmarks.client_cpu --rows 200 --no-batch # a server that takes one conversation per request

Needs the rows of the peer benchmark in `../shared/peer` beside the repository. Questions are asked as stages ask them:
per window of 25 rows one call for each kind of question, a few windows at once, through the cache.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.judge_client import questions_of
from benchmarks.targets import at_most
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion
from metric_core.records import AnswerStatus
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.options.judge_server_options import ServerJudgeOptions

ROWS = Path(__file__).resolve().parents[1].parent / "shared" / "peer" / "bench_rows.jsonl"
WINDOW = 25
COLD_MS, KEPT_MS = 0.4, 0.1
"""Targets: CPU milliseconds per question that is asked, and per question whose answer is kept."""

Call = list[ChoiceQuestion] | list[GenerateQuestion]


def rows(number: int) -> list[dict[str, Any]]:
    """Return rows with texts of their own."""
    with ROWS.open(encoding="utf-8") as lines:
        given = [json.loads(line) for line in lines]
    made = []
    for i in range(number):
        row, lap = given[i % len(given)], i // len(given)
        texts = {name: f"{lap}. {row[name]}" for name in ("user_input", "response", "reference")}
        made.append({**row, **texts, "retrieved_contexts": [f"{lap}. {text}" for text in row["retrieved_contexts"]]})
    return made


def calls(number: int) -> Iterator[list[Call]]:
    """Yield the calls of each window."""
    source = iter(rows(number))
    while window := list(islice(source, WINDOW)):
        questions = [question for row in window for question in questions_of(row)]
        key = lambda question: (isinstance(question, ChoiceQuestion), question.kind)  # noqa: E731
        yield [list(group) for _, group in groupby(sorted(questions, key=key), key)]  # type: ignore[misc]


def ask(judge: CachedJudge, windows: list[list[Call]], at_once: int) -> dict[str, float]:
    """Ask all questions and return CPU and wall seconds, and counts."""
    wall, cpu = time.monotonic(), time.process_time()

    def ask_window(window: list[Call]) -> tuple[int, int, int]:
        batcher, failed = JudgeBatcher(judge), 0
        for call in window:
            asked: Any = batcher.choose if isinstance(call[0], ChoiceQuestion) else batcher.generate
            failed += sum(answer.status is not AnswerStatus.ANSWERED for answer in asked(call))
        return batcher.usage.questions, batcher.usage.stored, failed

    with ThreadPoolExecutor(at_once) as pool:
        counts = list(pool.map(ask_window, windows))
    questions, stored, failed = (sum(column) for column in zip(*counts, strict=True))
    spent = {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu}
    return {**spent, "questions": questions, "stored": stored, "failed": failed}


@contextmanager
def instant_judge(*options: str) -> Iterator[str]:
    """Run the server on a free port, and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("instant_judge.py")), str(port), *options])
    try:
        for _ in range(100):
            try:
                urlopen(f"{url}/v1/models", timeout=5).close()
                break
            except URLError:
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--windows", type=int, default=4, help="windows at once")
    parser.add_argument("--no-batch", action="store_true", help="a server that knows single requests only")
    options = parser.parse_args()
    if not ROWS.is_file():
        sys.exit(f"the rows are missing: no {ROWS}")
    windows = list(calls(options.rows))
    with instant_judge(*(["--no-batch"] if options.no_batch else [])) as url, tempfile.TemporaryDirectory() as folder:
        cache = AnswerCache(f"sqlite:///{folder}/answers.db")
        inner = OpenAIJudge(ServerJudgeOptions(urls=(f"{url}/v1",)))
        judge = CachedJudge(inner, cache)
        for name, target in (("cold", COLD_MS), ("kept", KEPT_MS)):
            done = ask(judge, windows, options.windows)
            each = 1000 * done["cpu"] / done["questions"]
            print(at_most(f"{name}: ms of CPU per question", each, target))
            print(
                f"{done['questions']:,} questions ({done['questions'] / options.rows:.1f} per row), "
                f"{done['stored']:,} kept, {done['failed']} failed, {options.rows / done['wall']:.0f} rows per second"
            )
        with urlopen(f"{url}/stats") as stats:
            print(json.load(stats))
        inner.close()


if __name__ == "__main__":
    main()
